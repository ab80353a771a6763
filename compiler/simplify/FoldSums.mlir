// Sums of weights in wider numbers are constants, also where all of these would be above the limit.
// RUN: heddle-opt %s --heddle-simplify-fold=limit-bytes=1024 --canonicalize | FileCheck %s

// CHECK-LABEL: @sums
// CHECK-NOT: graph.cast
// CHECK: graph.constant dense<96> : tensor<1x16xi32>
// CHECK-NOT: graph.reduce_sum
func.func @sums() -> tensor<1x16xi32> {
  %w = graph.constant dense<3> : tensor<32x16xi8>
  %wide = graph.cast %w : (tensor<32x16xi8>) -> tensor<32x16xi32>
  %s = graph.reduce_sum %wide {axes = array<i64: 0>, keep_dims = true} : (tensor<32x16xi32>) -> tensor<1x16xi32>
  return %s : tensor<1x16xi32>
}

// Of what is no reduction all is stored, so that it stays.
// CHECK-LABEL: @negates
// CHECK: graph.neg
func.func @negates() -> tensor<32x16xi32> {
  %w = graph.constant dense<3> : tensor<32x16xi8>
  %wide = graph.cast %w : (tensor<32x16xi8>) -> tensor<32x16xi32>
  %n = graph.neg %wide : tensor<32x16xi32>
  return %n : tensor<32x16xi32>
}
