// What pays is the policy's to say; what may be one kernel is not.
// RUN: heddle-opt %s --heddle-partition="without=regions,siblings" | FileCheck %s
// RUN: heddle-opt %s --heddle-partition="without=regions,siblings policy=nothing" | FileCheck %s --check-prefix=NOTHING
// RUN: heddle-opt %s --heddle-partition="without=regions,siblings policy=all" | FileCheck %s --check-prefix=ALL
// RUN: not heddle-opt %s --heddle-partition="policy=some" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: heddle-partition: no policy 'some'; there are lanes, nothing and all

!x = tensor<64x64xf32>
module {
// CHECK-LABEL: @chain
// CHECK: graph.group "y"
// CHECK-NOT: graph.group
// NOTHING-LABEL: @chain
// NOTHING: graph.group "a"
// NOTHING: graph.group "y"
// ALL-LABEL: @chain
// ALL: graph.group "y"
// ALL-NOT: graph.group
func.func @chain(%x: !x) -> !x {
  %a = graph.exp %x : !x loc("a")
  %y = graph.abs %a : !x loc("y")
  return %y : !x
}

// What is costly is computed once on lanes.
// CHECK-LABEL: @two_readers
// CHECK: graph.group "a"
// CHECK: graph.group "y"
// CHECK: graph.group "z"
// NOTHING-LABEL: @two_readers
// NOTHING: graph.group "a"
// ALL-LABEL: @two_readers
// ALL-NOT: graph.group "a"
func.func @two_readers(%x: !x, %w: !x) -> (!x, tensor<64x1xf32>) {
  %a = graph.exp %x : !x loc("a")
  %y = graph.abs %a : !x loc("y")
  %z = graph.reduce_sum %a {axes = array<i64: 1>, keep_dims = true} : (!x) -> tensor<64x1xf32> loc("z")
  return %y, %z : !x, tensor<64x1xf32>
}

// A product takes in nothing of its left operand, whoever asks.
// CHECK-LABEL: @prologue
// CHECK: graph.group "a"
// CHECK: graph.group "y" {mechanism = "contraction"}
// NOTHING-LABEL: @prologue
// ALL-LABEL: @prologue
// ALL: graph.group "a"
// ALL: graph.group "y" {mechanism = "contraction"}
func.func @prologue(%x: !x, %w: !x) -> !x {
  %a = graph.exp %x : !x loc("a")
  %y = graph.matmul %a, %w : (!x, !x) -> !x loc("y")
  return %y : !x
}

// A product and the reduction of its rows are a group each where nothing pays.
// CHECK-LABEL: @rows
// CHECK: graph.group "y" {mechanism = "stitch"}
// NOTHING-LABEL: @rows
// NOTHING: graph.group "product" {mechanism = "contraction"}
// NOTHING: graph.group "y" {mechanism = "rows"}
// ALL-LABEL: @rows
// ALL: graph.group "y" {mechanism = "stitch"}
func.func @rows(%x: !x, %w: !x) -> tensor<64x1xf32> {
  %product = graph.matmul %x, %w : (!x, !x) -> !x loc("product")
  %y = graph.reduce_max %product {axes = array<i64: 1>, keep_dims = true} : (!x) -> tensor<64x1xf32> loc("y")
  return %y : tensor<64x1xf32>
}
}
