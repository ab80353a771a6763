// What is cheap and read by a few groups becomes part of each, if that moves no more bytes (Apollo).
// RUN: heddle-opt %s --heddle-partition="without=stitch,siblings,regions" | FileCheck %s

module {
// CHECK-LABEL: @cheap_for_two_readers
// CHECK-NOT: graph.group "shared"
// CHECK: graph.group "a" {mechanism = "rows"}
// CHECK-NEXT: graph.neg
// CHECK: graph.group "b" {mechanism = "pointwise"}
// CHECK-NEXT: graph.neg
func.func @cheap_for_two_readers(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %shared = graph.neg %x : tensor<4x8xf32> loc("shared")
  %a = graph.reduce_sum %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32> loc("a")
  %b = graph.abs %shared : tensor<4x8xf32> loc("b")
  return %a, %b : tensor<4xf32>, tensor<4x8xf32>
}

// Reading two operands again moves more bytes than reading their sum.
// CHECK-LABEL: @two_operands
// CHECK: graph.group "shared" {mechanism = "pointwise"}
// CHECK: graph.group "a" {mechanism = "rows"}
// CHECK: graph.group "b" {mechanism = "pointwise"}
func.func @two_operands(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %shared = graph.add %x, %y : tensor<4x8xf32> loc("shared")
  %a = graph.reduce_sum %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32> loc("a")
  %b = graph.abs %shared : tensor<4x8xf32> loc("b")
  return %a, %b : tensor<4xf32>, tensor<4x8xf32>
}

// A scalar that is broadcast counts for nothing.
// CHECK-LABEL: @a_scalar_beside
// CHECK-NOT: graph.group "shared"
// CHECK: graph.group "a" {mechanism = "rows"}
// CHECK: graph.group "b" {mechanism = "pointwise"}
func.func @a_scalar_beside(%x: tensor<4x8xf32>, %s: tensor<f32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %wide = graph.broadcast %s : (tensor<f32>) -> tensor<4x8xf32>
  %shared = graph.add %x, %wide : tensor<4x8xf32> loc("shared")
  %a = graph.reduce_sum %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32> loc("a")
  %b = graph.abs %shared : tensor<4x8xf32> loc("b")
  return %a, %b : tensor<4xf32>, tensor<4x8xf32>
}

// Neither do the few elements from which it is made: a mean, and the difference from it.
// CHECK-LABEL: @a_mean_beside
// CHECK-NOT: graph.group "shared"
// CHECK: graph.group "a" {mechanism = "pointwise"}
// CHECK: graph.group "b" {mechanism = "pointwise"}
func.func @a_mean_beside(%x: tensor<4x8xf32>, %count: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<4x8xf32>) {
  %sum = graph.reduce_sum %x {axes = array<i64: 0>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<1x8xf32> loc("sum")
  %mean = graph.div %sum, %count : tensor<1x8xf32> loc("mean")
  %wide = graph.broadcast %mean : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %shared = graph.sub %x, %wide : tensor<4x8xf32> loc("shared")
  %a = graph.reduce_sum %shared {axes = array<i64: 0>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<1x8xf32> loc("a")
  %b = graph.abs %shared : tensor<4x8xf32> loc("b")
  return %a, %b : tensor<1x8xf32>, tensor<4x8xf32>
}

// The result of a narrower type is cheaper to read than what it is made of.
// CHECK-LABEL: @narrowed
// CHECK: graph.group "shared" {mechanism = "pointwise"}
func.func @narrowed(%x: tensor<4x8xf32>) -> (tensor<4xi8>, tensor<4x8xi8>) {
  %shared = graph.cast %x : (tensor<4x8xf32>) -> tensor<4x8xi8> loc("shared")
  %a = graph.reduce_max %shared {axes = array<i64: 1>} : (tensor<4x8xi8>) -> tensor<4xi8> loc("a")
  %b = graph.abs %shared : tensor<4x8xi8> loc("b")
  return %a, %b : tensor<4xi8>, tensor<4x8xi8>
}

// What a result of the function is must be stored in any case.
// CHECK-LABEL: @a_result
// CHECK: graph.group "shared" {mechanism = "pointwise"}
func.func @a_result(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %shared = graph.neg %x : tensor<4x8xf32> loc("shared")
  %a = graph.reduce_sum %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32> loc("a")
  %b = graph.abs %shared : tensor<4x8xf32> loc("b")
  return %a, %b, %shared : tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// A product keeps its epilogue, though that is cheap.
// CHECK-LABEL: @an_epilogue
// CHECK: graph.group "shared" {mechanism = "contraction"}
// CHECK-NEXT: graph.matmul
// CHECK-NEXT: graph.neg
func.func @an_epilogue(%x: tensor<4x2xf32>, %w: tensor<2x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %product = graph.matmul %x, %w : (tensor<4x2xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %shared = graph.neg %product : tensor<4x8xf32> loc("shared")
  %a = graph.reduce_sum %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32> loc("a")
  %b = graph.abs %shared : tensor<4x8xf32> loc("b")
  return %a, %b : tensor<4xf32>, tensor<4x8xf32>
}

// Five readers are too many, and a costly function is computed once.
// CHECK-LABEL: @costly
// CHECK: graph.group "shared" {mechanism = "pointwise"}
func.func @costly(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %shared = graph.tanh %x : tensor<4x8xf32> loc("shared")
  %a = graph.reduce_sum %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32> loc("a")
  %b = graph.abs %shared : tensor<4x8xf32> loc("b")
  return %a, %b : tensor<4xf32>, tensor<4x8xf32>
}
// CHECK-LABEL: @five_readers
// CHECK: graph.group "shared" {mechanism = "pointwise"}
func.func @five_readers(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>) {
  %shared = graph.neg %x : tensor<4x8xf32> loc("shared")
  %a = graph.reduce_sum %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %b = graph.reduce_max %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %c = graph.reduce_min %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %d = graph.reduce_prod %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %e = graph.abs %shared : tensor<4x8xf32>
  return %a, %b, %c, %d, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>
}
}
