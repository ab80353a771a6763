// RUN: heddle-opt %s --heddle-simplify-conv-scale --heddle-simplify-algebra --heddle-simplify-fold | FileCheck %s

module {
// CHECK-LABEL: @batch_normalization
// CHECK: %[[C:.*]] = graph.conv %{{.*}}, %{{.*}} {
// CHECK: graph.add %[[C]]
// CHECK-NOT: graph.mul
// CHECK: return
func.func @batch_normalization(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32> {
  %w = graph.constant dense<[[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]],
                             [[[1.0, 0.0], [3.0, 0.0]], [[5.0, 0.0], [7.0, 0.0]]]]> : tensor<2x2x2x2xf32>
  %b = graph.constant dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32>
  %s = graph.constant dense<[[[3.0]], [[4.0]]]> : tensor<2x1x1xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>}
      : (tensor<1x2x4x4xf32>, tensor<2x2x2x2xf32>) -> tensor<1x2x3x3xf32>
  %1 = graph.broadcast %b : (tensor<2x1x1xf32>) -> tensor<1x2x3x3xf32>
  %2 = graph.add %0, %1 : tensor<1x2x3x3xf32>
  %3 = graph.broadcast %s : (tensor<2x1x1xf32>) -> tensor<1x2x3x3xf32>
  %4 = graph.mul %2, %3 : tensor<1x2x3x3xf32>
  return %4 : tensor<1x2x3x3xf32>
}

// CHECK-LABEL: @columns_of_a_matrix
// CHECK: graph.constant dense<{{\[\[}}2.0{{.*}}, 6.0{{.*}}], [6.0{{.*}}, 1.2
// CHECK: graph.matmul
// CHECK-NOT: graph.mul
func.func @columns_of_a_matrix(%x: tensor<5x2xf32>) -> tensor<5x2xf32> {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = graph.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %0 = graph.matmul %x, %w : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
  %1 = graph.broadcast %s : (tensor<2xf32>) -> tensor<5x2xf32>
  %2 = graph.mul %0, %1 : tensor<5x2xf32>
  return %2 : tensor<5x2xf32>
}

// A scale that varies along rows is no factor of the weights.
// CHECK-LABEL: @leaves_rows
// CHECK: graph.mul
func.func @leaves_rows(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = graph.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32>
  %0 = graph.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = graph.broadcast %s : (tensor<2x1xf32>) -> tensor<2x2xf32>
  %2 = graph.mul %0, %1 : tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}

// CHECK-LABEL: @leaves_what_others_use
// CHECK: graph.mul
func.func @leaves_what_others_use(%x: tensor<5x2xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = graph.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %0 = graph.matmul %x, %w : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
  %1 = graph.broadcast %s : (tensor<2xf32>) -> tensor<5x2xf32>
  %2 = graph.mul %0, %1 : tensor<5x2xf32>
  return %0, %2 : tensor<5x2xf32>, tensor<5x2xf32>
}
}
