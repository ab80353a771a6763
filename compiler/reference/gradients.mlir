// What convolutions and pools give back, against values written by hand.
// RUN: heddle-opt %s --heddle-interpret | FileCheck %s

func.func @main() -> (tensor<1x1x3xf32>, tensor<2x1x2xf32>, tensor<1x2x1xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
  %x = graph.constant dense<[[[1.0, 2.0, 3.0, 4.0]]]> : tensor<1x1x4xf32>
  %dy = graph.constant dense<[[[1.0, 10.0, 100.0, 1000.0]]]> : tensor<1x1x4xf32>
  // The first place meets _ 1 2 3, the second 1 2 3 4, the third 2 3 4 _.
  // CHECK: 1x1x3xf32 {{\[\[\[}}3210, 4321, 432]]]
  %same = graph.conv_filter_gradient %x, %dy {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 1>, high = array<i64: 1>}
    : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x1x3xf32>
  %two = graph.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]> : tensor<1x2x3xf32>
  %ds = graph.constant dense<[[[1.0, 10.0], [1.0, -1.0]]]> : tensor<1x2x2xf32>
  // CHECK-NEXT: 2x1x2xf32 {{\[\[\[}}21, 32]], {{\[\[}}-1, -1]]]
  %depthwise = graph.conv_filter_gradient %two, %ds {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, groups = 2}
    : (tensor<1x2x3xf32>, tensor<1x2x2xf32>) -> tensor<2x1x2xf32>
  %last = graph.constant dense<[[[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]]> : tensor<1x3x2xf32>
  %dl = graph.constant dense<[[[1.0], [10.0]]]> : tensor<1x2x1xf32>
  // CHECK-NEXT: 1x2x1xf32 {{\[\[\[}}31], [75]]]
  %strided = graph.conv_filter_gradient %last, %dl {strides = array<i64: 2>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, channels_last = true}
    : (tensor<1x3x2xf32>, tensor<1x2x1xf32>) -> tensor<1x2x1xf32>
  %share = graph.constant dense<[[[1.0, 10.0, 100.0]]]> : tensor<1x1x3xf32>
  // CHECK-NEXT: 1x1x4xf32 {{\[\[\[}}1, 11, 110, 100]]]
  %all = graph.unpool %share {window = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>}
    : (tensor<1x1x3xf32>) -> tensor<1x1x4xf32>
  %image = graph.constant dense<[[[1.0, 3.0, 3.0, 2.0]]]> : tensor<1x1x4xf32>
  %best = graph.constant dense<3.0> : tensor<1x1x3xf32>
  // CHECK-NEXT: 1x1x4xf32 {{\[\[\[}}0, 11, 110, 0]]]
  %equal = graph.unpool %share, %image, %best {window = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>}
    : (tensor<1x1x3xf32>, tensor<1x1x4xf32>, tensor<1x1x3xf32>) -> tensor<1x1x4xf32>
  return %same, %depthwise, %strided, %all, %equal : tensor<1x1x3xf32>, tensor<2x1x2xf32>, tensor<1x2x1xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>
}
