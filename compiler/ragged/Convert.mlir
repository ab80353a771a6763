// Padded ops become ops on ragged tensors: those that treat tokens alike on one long row, others on
// rows of their lengths.
// RUN: heddle-opt %s --heddle-ragged="rows=batch:seq=lengths" --split-input-file | FileCheck %s

// Tokens: the product and its bias are those of one long row.
// CHECK-LABEL: func.func @main(%arg0: {{.*}}, %arg1: tensor<?xi64, #graph.dims<"batch">> {graph.name = "lengths"})
// CHECK: graph.row_lengths %arg1 {of = "batch", size = "seq"}
// CHECK: %[[CUT:.*]] = graph.slice %arg0 {{.*}} -> tensor<?x?x4xf32, #graph.dims<"batch", "seq(batch)", 4>>
// CHECK: %[[LONG:.*]] = graph.reshape %[[CUT]] {{.*}} -> tensor<1x?x4xf32, #graph.dims<1, "total(seq(batch))", 4>>
// CHECK: graph.matmul %[[LONG]], %{{.*}} -> tensor<1x?x2xf32, #graph.dims<1, "total(seq(batch))", 2>>
// CHECK: %[[ROWS:.*]] = graph.reshape %{{.*}} -> tensor<?x?x2xf32, #graph.dims<"batch", "seq(batch)", 2>>
// CHECK: graph.pad %[[ROWS]], %{{.*}} {high = #graph.dims<0, "seq - seq(batch)", 0>
func.func @main(%x: tensor<?x?x4xf32, #graph.dims<"batch", "seq", 4>> {graph.name = "x"})
    -> tensor<?x?x2xf32, #graph.dims<"batch", "seq", 2>> {
  %w = graph.constant dense<2.0> : tensor<1x4x2xf32>
  %y = graph.matmul %x, %w : (tensor<?x?x4xf32, #graph.dims<"batch", "seq", 4>>, tensor<1x4x2xf32>) -> tensor<?x?x2xf32, #graph.dims<"batch", "seq", 2>>
  %r = graph.abs %y : tensor<?x?x2xf32, #graph.dims<"batch", "seq", 2>>
  return %r : tensor<?x?x2xf32, #graph.dims<"batch", "seq", 2>>
}

// -----

// A reduction over each row, divided by its length.
// CHECK-LABEL: func.func @main
// CHECK: %[[LENGTHS:.*]] = graph.row_lengths
// CHECK: graph.reduce_sum %{{.*}} {axes = array<i64: 1>} : (tensor<?x?xf32, #graph.dims<"batch", "seq(batch)">>) -> tensor<?xf32, #graph.dims<"batch">>
// CHECK: graph.mul %{{.*}}, %[[LENGTHS]] : tensor<?xi64, #graph.dims<"batch">>
// CHECK: graph.cast %{{.*}} -> tensor<?xf32, #graph.dims<"batch">>
// CHECK: graph.div
func.func @main(%x: tensor<?x?xf32, #graph.dims<"batch", "seq">> {graph.name = "x"})
    -> tensor<?xf32, #graph.dims<"batch">> {
  %s = graph.reduce_sum %x {axes = array<i64: 1>} : (tensor<?x?xf32, #graph.dims<"batch", "seq">>) -> tensor<?xf32, #graph.dims<"batch">>
  %n = graph.sizes {values = #graph.dims<"seq">} : () -> tensor<i64>
  %f = graph.cast %n : (tensor<i64>) -> tensor<f32>
  %d = graph.broadcast %f : (tensor<f32>) -> tensor<?xf32, #graph.dims<"batch">>
  %r = graph.div %s, %d : tensor<?xf32, #graph.dims<"batch">>
  return %r : tensor<?xf32, #graph.dims<"batch">>
}

// -----

// Time first, rows and heads in one dimension, as torch has it.
// CHECK-LABEL: func.func @main
// CHECK: graph.reshape {{.*}} -> tensor<?x2x2xf32, #graph.dims<"total(seq(batch))", 2, 2>>
// CHECK: %[[T:.*]] = graph.transpose %{{.*}} {permutation = array<i64: 0, 2, 1, 3>} : {{.*}} -> tensor<?x2x?x2xf32, #graph.dims<"batch", 2, "seq(batch)", 2>>
// CHECK: graph.reshape %[[T]] {{.*}} -> tensor<?x?x2xf32, #graph.dims<"2*batch", "seq(batch)", 2>>
// CHECK: graph.reduce_max %{{.*}} -> tensor<?x1x2xf32, #graph.dims<"2*batch", 1, 2>>
func.func @main(%x: tensor<?x?x4xf32, #graph.dims<"batch", "seq", 4>> {graph.name = "x"})
    -> tensor<?x1x2xf32, #graph.dims<"2*batch", 1, 2>> {
  %t = graph.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<?x?x4xf32, #graph.dims<"batch", "seq", 4>>) -> tensor<?x?x4xf32, #graph.dims<"seq", "batch", 4>>
  %h = graph.reshape %t : (tensor<?x?x4xf32, #graph.dims<"seq", "batch", 4>>) -> tensor<?x?x2xf32, #graph.dims<"seq", "2*batch", 2>>
  %r = graph.transpose %h {permutation = array<i64: 1, 0, 2>} : (tensor<?x?x2xf32, #graph.dims<"seq", "2*batch", 2>>) -> tensor<?x?x2xf32, #graph.dims<"2*batch", "seq", 2>>
  %m = graph.reduce_max %r {axes = array<i64: 1>, keep_dims = true} : (tensor<?x?x2xf32, #graph.dims<"2*batch", "seq", 2>>) -> tensor<?x1x2xf32, #graph.dims<"2*batch", 1, 2>>
  return %m : tensor<?x1x2xf32, #graph.dims<"2*batch", 1, 2>>
}

// -----

// A recurrence keeps the states of rows that are over, and there is one of it.
// CHECK-LABEL: func.func @main
// CHECK: %[[IN:.*]] = graph.less
// CHECK: graph.scan %{{.*}}, %{{.*}}, %[[IN]]
// CHECK: graph.select
// CHECK-NOT: graph.scan
// CHECK: return
func.func @main(%x: tensor<?x?xf32, #graph.dims<"seq", "batch">> {graph.name = "x"}, %s: tensor<?xf32, #graph.dims<"batch">> {graph.name = "s"})
    -> tensor<?xf32, #graph.dims<"batch">> {
  %r = graph.scan %s, %x {state_count = 1 : i64} : (tensor<?xf32, #graph.dims<"batch">>, tensor<?x?xf32, #graph.dims<"seq", "batch">>) -> tensor<?xf32, #graph.dims<"batch">> {
  ^bb0(%a: tensor<?xf32, #graph.dims<"batch">>, %b: tensor<?xf32, #graph.dims<"batch">>):
    %c = graph.add %a, %b : tensor<?xf32, #graph.dims<"batch">>
    graph.yield %c : tensor<?xf32, #graph.dims<"batch">>
  }
  return %r : tensor<?xf32, #graph.dims<"batch">>
}

// -----

// A causal mask is one of the positions in each row.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[ROW:.*]] = graph.iota {axis = 1 : i64} : () -> tensor<?x?x?xi64, #graph.dims<"batch", "seq(batch)", "seq(batch)">>
// CHECK-DAG: %[[COLUMN:.*]] = graph.iota {axis = 2 : i64} : () -> tensor<?x?x?xi64, #graph.dims<"batch", "seq(batch)", "seq(batch)">>
// CHECK: %[[MASK:.*]] = graph.greater_equal %[[ROW]], %[[COLUMN]]
// CHECK: graph.select %[[MASK]]
func.func @main(%x: tensor<?x?xf32, #graph.dims<"batch", "seq">> {graph.name = "x"})
    -> tensor<?x?xf32, #graph.dims<"batch", "seq">> {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %i = graph.iota {axis = 0} : () -> tensor<?x?xi64, #graph.dims<"seq", "seq">>
  %j = graph.iota {axis = 1} : () -> tensor<?x?xi64, #graph.dims<"seq", "seq">>
  %m = graph.less_equal %j, %i : (tensor<?x?xi64, #graph.dims<"seq", "seq">>, tensor<?x?xi64, #graph.dims<"seq", "seq">>) -> tensor<?x?xi1, #graph.dims<"seq", "seq">>
  %b = graph.broadcast %m : (tensor<?x?xi1, #graph.dims<"seq", "seq">>) -> tensor<?x?x?xi1, #graph.dims<"batch", "seq", "seq">>
  %c = graph.reshape %x : (tensor<?x?xf32, #graph.dims<"batch", "seq">>) -> tensor<?x?x1xf32, #graph.dims<"batch", "seq", 1>>
  %r = graph.reshape %x : (tensor<?x?xf32, #graph.dims<"batch", "seq">>) -> tensor<?x1x?xf32, #graph.dims<"batch", 1, "seq">>
  %s = graph.matmul %c, %r : (tensor<?x?x1xf32, #graph.dims<"batch", "seq", 1>>, tensor<?x1x?xf32, #graph.dims<"batch", 1, "seq">>) -> tensor<?x?x?xf32, #graph.dims<"batch", "seq", "seq">>
  %z = graph.broadcast %zero : (tensor<f32>) -> tensor<?x?x?xf32, #graph.dims<"batch", "seq", "seq">>
  %k = graph.select %b, %s, %z : (tensor<?x?x?xi1, #graph.dims<"batch", "seq", "seq">>, tensor<?x?x?xf32, #graph.dims<"batch", "seq", "seq">>, tensor<?x?x?xf32, #graph.dims<"batch", "seq", "seq">>) -> tensor<?x?x?xf32, #graph.dims<"batch", "seq", "seq">>
  %t = graph.reduce_sum %k {axes = array<i64: 2>} : (tensor<?x?x?xf32, #graph.dims<"batch", "seq", "seq">>) -> tensor<?x?xf32, #graph.dims<"batch", "seq">>
  return %t : tensor<?x?xf32, #graph.dims<"batch", "seq">>
}
