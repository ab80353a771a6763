// Reductions, extremes, running sums and sorting against values written by hand.
// RUN: heddle-opt %s --heddle-interpret | FileCheck %s

func.func @main() -> (tensor<2xf32>, tensor<1x3xf32>, tensor<i8>, tensor<2xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>,
    tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xi32>, tensor<3xi64>, tensor<2xf32>, tensor<2xi64>, tensor<1xf32>, tensor<f32>) {
  %x = graph.constant dense<[[1.0, 5.0, 3.0], [4.0, 2.0, 4.0]]> : tensor<2x3xf32>
  // CHECK: 2xf32 [9, 10]
  %sum = graph.reduce_sum %x {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  // CHECK-NEXT: 1x3xf32 {{\[\[}}4, 10, 12]]
  %prod = graph.reduce_prod %x {axes = array<i64: 0>, keep_dims = true} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %i8 = graph.constant dense<[100, 100]> : tensor<2xi8>
  // CHECK-NEXT: i8 -56
  %wrap = graph.reduce_sum %i8 {axes = array<i64: 0>} : (tensor<2xi8>) -> tensor<i8>
  %empty = graph.constant dense<> : tensor<2x0xf32>
  // CHECK-NEXT: 2xf32 [-inf, -inf]
  %none = graph.reduce_max %empty {axes = array<i64: 1>} : (tensor<2x0xf32>) -> tensor<2xf32>
  // CHECK-NEXT: f32 1
  %min = graph.reduce_min %x {axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK-NEXT: 2xi64 [1, 0]
  %argmax = graph.argmax %x {axis = 1} : (tensor<2x3xf32>) -> tensor<2xi64>
  // CHECK-NEXT: 2xi64 [1, 2]
  %last = graph.argmax %x {axis = 1, last = true} : (tensor<2x3xf32>) -> tensor<2xi64>
  // CHECK-NEXT: 2x3xf32 {{\[\[}}1, 6, 9], [4, 6, 10]]
  %cumsum = graph.cumsum %x {axis = 1} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: 2x3xf32 {{\[\[}}8, 3, 0], [6, 4, 0]]
  %reverse = graph.cumsum %x {axis = 1, exclusive = true, reverse = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %v = graph.constant dense<[3, 7, 3, 1, 7]> : tensor<5xi32>
  // CHECK-NEXT: 3xi32 [7, 7, 3]
  // CHECK-NEXT: 3xi64 [1, 4, 0]
  %top:2 = graph.topk %v {axis = 0} : (tensor<5xi32>) -> (tensor<3xi32>, tensor<3xi64>)
  %nan = graph.constant dense<[1.0, 0x7FC00000, -1.0]> : tensor<3xf32>
  // CHECK-NEXT: 2xf32 [-1, 1]
  // CHECK-NEXT: 2xi64 [2, 0]
  %low:2 = graph.topk %nan {axis = 0, largest = false} : (tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  // CHECK-NEXT: 1xf32 [nan]
  %spread = graph.reduce_max %nan {axes = array<i64: 0>, keep_dims = true} : (tensor<3xf32>) -> tensor<1xf32>
  // Sums of f32 are kept in double: 1e8 + 1 - 1e8.
  %cancel = graph.constant dense<[1.0e8, 1.0, -1.0e8]> : tensor<3xf32>
  // CHECK-NEXT: f32 1
  %exact = graph.reduce_sum %cancel {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %sum, %prod, %wrap, %none, %min, %argmax, %last, %cumsum, %reverse, %top#0, %top#1, %low#0, %low#1, %spread, %exact
    : tensor<2xf32>, tensor<1x3xf32>, tensor<i8>, tensor<2xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>,
    tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xi32>, tensor<3xi64>, tensor<2xf32>, tensor<2xi64>, tensor<1xf32>, tensor<f32>
}
