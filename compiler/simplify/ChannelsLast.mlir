// RUN: heddle-opt %s --heddle-simplify-channels-last | FileCheck %s

module {
// One transpose before the first convolution, one after the last.
// CHECK-LABEL: @two_convolutions
// CHECK-COUNT-1: graph.transpose
// CHECK: graph.conv {{.*}}channels_last = true
// CHECK-NOT: graph.transpose
// CHECK: graph.max %{{.*}} : tensor<1x8x8x4xf32>
// CHECK-NOT: graph.transpose
// CHECK: graph.conv {{.*}}channels_last = true
// CHECK-COUNT-1: graph.transpose
// CHECK-NOT: graph.transpose
// CHECK: return
func.func @two_convolutions(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %v: tensor<5x4x3x3xf32>,
                            %b: tensor<4x1x1xf32>) -> tensor<1x5x8x8xf32> {
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 1, 1>, high = array<i64: 1, 1>}
      : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
  %1 = graph.broadcast %b : (tensor<4x1x1xf32>) -> tensor<1x4x8x8xf32>
  %2 = graph.add %0, %1 : tensor<1x4x8x8xf32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %3 = graph.broadcast %zero : (tensor<f32>) -> tensor<1x4x8x8xf32>
  %4 = graph.max %2, %3 : tensor<1x4x8x8xf32>
  %5 = graph.conv %4, %v {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 1, 1>, high = array<i64: 1, 1>}
      : (tensor<1x4x8x8xf32>, tensor<5x4x3x3xf32>) -> tensor<1x5x8x8xf32>
  return %5 : tensor<1x5x8x8xf32>
}

// Mean over space and a flattening of sizes of 1 need no transpose.
// CHECK-LABEL: @head
// CHECK: graph.transpose
// CHECK: graph.conv
// CHECK: graph.reduce_sum %{{.*}} {axes = array<i64: 1, 2>, keep_dims = true}
// CHECK-NOT: graph.transpose
// CHECK: return
func.func @head(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4xf32> {
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>}
      : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32>
  %1 = graph.reduce_sum %0 {axes = array<i64: 2, 3>, keep_dims = true}
      : (tensor<1x4x8x8xf32>) -> tensor<1x4x1x1xf32>
  %2 = graph.reshape %1 : (tensor<1x4x1x1xf32>) -> tensor<1x4xf32>
  return %2 : tensor<1x4xf32>
}

// A model that is channels last but for its convolution keeps no transpose.
// CHECK-LABEL: @absorbs_transposes
// CHECK-NOT: graph.transpose
// CHECK: return
func.func @absorbs_transposes(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x8x8x4xf32> {
  %t = graph.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x3xf32>) -> tensor<1x3x8x8xf32>
  %0 = graph.conv %t, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>}
      : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x4x8x8xf32>) -> tensor<1x8x8x4xf32>
  return %1 : tensor<1x8x8x4xf32>
}

// CHECK-LABEL: @leaves_what_no_convolution_reaches
// CHECK-NOT: graph.transpose
// CHECK: return
func.func @leaves_what_no_convolution_reaches(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32> {
  %0 = graph.exp %x : tensor<1x3x8x8xf32>
  return %0 : tensor<1x3x8x8xf32>
}

// What is transposed is the small image, not the large ones that follow from it.
// CHECK-LABEL: @grows
// CHECK: %[[T:.*]] = graph.transpose {{.*}} -> tensor<1x4x4x8xf32>
// CHECK: graph.resize %[[T]]
// CHECK: graph.concat
// CHECK-NOT: graph.transpose {{.*}} -> tensor<1x16x16x16xf32>
// CHECK: graph.conv
func.func @grows(%x: tensor<1x4x32xf32>) -> tensor<1x3x16x16xf32> {
  %w = graph.constant dense<1.0> : tensor<3x16x1x1xf32>
  %0 = graph.reshape %x : (tensor<1x4x32xf32>) -> tensor<1x8x4x4xf32>
  %1 = graph.resize %0 {scales = array<f64: 1.0, 1.0, 4.0, 4.0>, mode = "linear",
      coordinates = "half_pixel"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x16x16xf32>
  %2 = graph.concat %1, %1 {axis = 1 : i64}
      : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x16x16x16xf32>
  %3 = graph.conv %2, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>}
      : (tensor<1x16x16x16xf32>, tensor<3x16x1x1xf32>) -> tensor<1x3x16x16xf32>
  return %3 : tensor<1x3x16x16xf32>
}
}
