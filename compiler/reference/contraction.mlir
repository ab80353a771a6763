// Products, convolutions and pools against values written by hand.
// RUN: heddle-opt %s --heddle-interpret | FileCheck %s

!image = tensor<1x1x3x3xf32>
func.func @main(%x: !image) -> (tensor<2x2xf32>, tensor<2x1x2xi32>, tensor<1x1x2x2xf32>, tensor<1x2x2x1xf32>, tensor<1x1x3x3xf32>,
    tensor<1x2x2xf32>, tensor<1x1x4xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2xf32>) {
  %a = graph.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %b = graph.constant dense<[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]> : tensor<3x2xf32>
  // CHECK: 2x2xf32 {{\[\[}}4, 5], [10, 11]]
  %matmul = graph.matmul %a, %b : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %p = graph.constant dense<[[[100, 100]], [[-100, 1]]]> : tensor<2x1x2xi8>
  %q = graph.constant dense<[[[100, 1], [100, 2]]]> : tensor<1x2x2xi8>
  // CHECK-NEXT: 2x1x2xi32 {{\[\[\[}}20000, 300]], {{\[\[}}-9900, -98]]]
  %batched = graph.matmul %p, %q : (tensor<2x1x2xi8>, tensor<1x2x2xi8>) -> tensor<2x1x2xi32>
  %w = graph.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  // 0 1 2 / 3 4 5 / 6 7 8 with 1 2 / 3 4.
  // CHECK-NEXT: 1x1x2x2xf32 {{\[\[\[\[}}27, 37], [57, 67]]]]
  %conv = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>}
    : (!image, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %last = graph.reshape %x : (!image) -> tensor<1x3x3x1xf32>
  // CHECK-NEXT: 1x2x2x1xf32 {{\[\[\[\[}}0], [11]], {{\[\[}}30], [67]]]]
  %strided = graph.conv %last, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 0, 0>, channels_last = true}
    : (tensor<1x3x3x1xf32>, tensor<1x1x2x2xf32>) -> tensor<1x2x2x1xf32>
  // Dilation 2 sees the corners of the padded image.
  // CHECK-NEXT: 1x1x3x3xf32 {{\[\[\[\[}}16, 29, 12], [30, 54, 22], [8, 13, 4]]]]
  %dilated = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>, low = array<i64: 1, 1>, high = array<i64: 1, 1>}
    : (!image, tensor<1x1x2x2xf32>) -> tensor<1x1x3x3xf32>
  %two = graph.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]> : tensor<1x2x3xf32>
  %dw = graph.constant dense<[[[1.0, 1.0]], [[1.0, -1.0]]]> : tensor<2x1x2xf32>
  // CHECK-NEXT: 1x2x2xf32 {{\[\[\[}}3, 5], [-1, -1]]]
  %depthwise = graph.conv %two, %dw {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, groups = 2}
    : (tensor<1x2x3xf32>, tensor<2x1x2xf32>) -> tensor<1x2x2xf32>
  %tx = graph.constant dense<[[[1.0, 2.0]]]> : tensor<1x1x2xf32>
  %tw = graph.constant dense<[[[1.0, 10.0, 100.0]]]> : tensor<1x1x3xf32>
  // Full result 1 10 102 20 200; one is cut off at the begin.
  // CHECK-NEXT: 1x1x4xf32 {{\[\[\[}}10, 102, 20, 200]]]
  %transposed = graph.conv_transpose %tx, %tw {strides = array<i64: 2>, dilations = array<i64: 1>, low = array<i64: 1>, high = array<i64: 0>, output_padding = array<i64: 0>}
    : (tensor<1x1x2xf32>, tensor<1x1x3xf32>) -> tensor<1x1x4xf32>
  // CHECK-NEXT: 1x1x2x2xf32 {{\[\[\[\[}}4, 5], [7, 8]]]]
  %max = graph.pool %x {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>}
    : (!image) -> tensor<1x1x2x2xf32>
  // CHECK-NEXT: 1x1x2x2xf32 {{\[\[\[\[}}2, 3.5], [6.5, 8]]]]
  %ceil = graph.pool %x {kind = "average", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>, ceil_mode = true, count_padding = true}
    : (!image) -> tensor<1x1x2x2xf32>
  // CHECK-NEXT: 1x1x2x2xf32 {{\[\[\[\[}}0, 0.75], [2.25, 6]]]]
  %padded = graph.pool %x {kind = "average", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 0, 0>, count_padding = true}
    : (!image) -> tensor<1x1x2x2xf32>
  // CHECK-NEXT: 1x1x2xf32 {{\[\[\[}}1, 2]]]
  %excluded = graph.pool %tx {kind = "average", window = array<i64: 2>, strides = array<i64: 2>, dilations = array<i64: 1>, low = array<i64: 1>, high = array<i64: 1>}
    : (tensor<1x1x2xf32>) -> tensor<1x1x2xf32>
  return %matmul, %batched, %conv, %strided, %dilated, %depthwise, %transposed, %max, %ceil, %padded, %excluded
    : tensor<2x2xf32>, tensor<2x1x2xi32>, tensor<1x1x2x2xf32>, tensor<1x2x2x1xf32>, tensor<1x1x3x3xf32>,
    tensor<1x2x2xf32>, tensor<1x1x4xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2xf32>
}
