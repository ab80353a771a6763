// RUN: heddle-opt %s --heddle-simplify-transposed-conv | FileCheck %s

// CHECK-LABEL: @becomes_one_convolution_of_all_phases
func.func @becomes_one_convolution_of_all_phases(%x: tensor<1x4x5x3xf32>, %w: tensor<1xf32>)
    -> tensor<1x8x10x2xf32> {
  %f = graph.constant dense<1.0> : tensor<3x2x3x3xf32>
  // CHECK: %[[P:.*]] = graph.conv %{{.*}} (tensor<1x4x5x3xf32>, tensor<8x3x2x2xf32>) -> tensor<1x5x6x8xf32>
  // CHECK: graph.reshape %[[P]]
  // CHECK: graph.transpose
  // CHECK: graph.reshape
  // CHECK: graph.slice {{.*}} -> tensor<1x8x10x2xf32>
  %y = graph.conv_transpose %x, %f {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
      low = array<i64: 1, 1>, high = array<i64: 1, 1>, output_padding = array<i64: 1, 1>,
      channels_last = true} : (tensor<1x4x5x3xf32>, tensor<3x2x3x3xf32>) -> tensor<1x8x10x2xf32>
  return %y : tensor<1x8x10x2xf32>
}

// One convolution for each phase, columns beside each other as channels, rows as columns.
// CHECK-LABEL: @has_a_convolution_for_each_phase
func.func @has_a_convolution_for_each_phase(%x: tensor<1x4x5x3xf32>, %f: tensor<3x2x3x3xf32>)
    -> tensor<1x8x10x2xf32> {
  // CHECK: %[[A:.*]] = graph.matmul {{.*}} -> tensor<1x4x5x2xf32>
  // CHECK: %[[B:.*]] = graph.conv {{.*}}high = array<i64: 0, 1>{{.*}} tensor<2x3x1x2xf32>) -> tensor<1x4x5x2xf32>
  // CHECK: %[[AB:.*]] = graph.concat %[[A]], %[[B]] {axis = 3 : i64}
  // CHECK: graph.conv {{.*}} tensor<2x3x2x1xf32>) -> tensor<1x4x5x2xf32>
  // CHECK: graph.conv {{.*}} tensor<2x3x2x2xf32>) -> tensor<1x4x5x2xf32>
  // CHECK: %[[CD:.*]] = graph.concat {{.*}} {axis = 3 : i64}
  // CHECK: graph.concat %[[AB]], %[[CD]] {axis = 2 : i64}
  %y = graph.conv_transpose %x, %f {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
      low = array<i64: 1, 1>, high = array<i64: 1, 1>, output_padding = array<i64: 1, 1>,
      channels_last = true} : (tensor<1x4x5x3xf32>, tensor<3x2x3x3xf32>) -> tensor<1x8x10x2xf32>
  return %y : tensor<1x8x10x2xf32>
}

// CHECK-LABEL: @turns_filters_without_strides
func.func @turns_filters_without_strides(%x: tensor<1x4x5x4xf32>, %f: tensor<4x3x3x3xf32>)
    -> tensor<1x4x5x6xf32> {
  // CHECK: %[[F:.*]] = graph.slice {{.*}} steps = array<i64: 1, 1, -1, -1>
  // CHECK: graph.transpose
  // CHECK: graph.conv %{{.*}} groups = 2 : i64, high = array<i64: 1, 1>, low = array<i64: 1, 1>{{.*}} tensor<6x2x3x3xf32>)
  // CHECK-NEXT: return
  %y = graph.conv_transpose %x, %f {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 1, 1>, high = array<i64: 1, 1>, output_padding = array<i64: 0, 0>,
      groups = 2 : i64, channels_last = true}
      : (tensor<1x4x5x4xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x5x6xf32>
  return %y : tensor<1x4x5x6xf32>
}

// CHECK-LABEL: @leaves_dilated_strides_alone
func.func @leaves_dilated_strides_alone(%x: tensor<1x4x5x4xf32>, %f: tensor<4x2x2x2xf32>) -> tensor<1x9x11x2xf32> {
  // CHECK: graph.conv_transpose
  %y = graph.conv_transpose %x, %f {strides = array<i64: 2, 2>, dilations = array<i64: 2, 2>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>,
      channels_last = true}
      : (tensor<1x4x5x4xf32>, tensor<4x2x2x2xf32>) -> tensor<1x9x11x2xf32>
  return %y : tensor<1x9x11x2xf32>
}

// What takes each element by itself comes before the phases are interleaved.
// CHECK-LABEL: @elements
func.func @elements(%x: tensor<1x4x5x3xf32>, %b: tensor<2xf32>) -> tensor<1x8x10x2xui8> {
  %f = graph.constant dense<1.0> : tensor<3x2x2x2xf32>
  %z = graph.constant dense<0.0> : tensor<1x8x10x2xf32>
  // CHECK: %[[P:.*]] = graph.conv
  // CHECK: %[[V:.*]] = graph.concat
  // CHECK: %[[B:.*]] = graph.broadcast %[[V]] : (tensor<8xf32>) -> tensor<1x4x5x8xf32>
  // CHECK: %[[S:.*]] = graph.add %[[P]], %[[B]] : tensor<1x4x5x8xf32>
  // CHECK: %[[M:.*]] = graph.max %[[S]]
  // CHECK: %[[C:.*]] = graph.cast %[[M]] {{.*}} -> tensor<1x4x5x8xui8>
  // CHECK: graph.reshape %[[C]]
  // CHECK-NOT: graph.slice
  %y = graph.conv_transpose %x, %f {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>,
      channels_last = true} : (tensor<1x4x5x3xf32>, tensor<3x2x2x2xf32>) -> tensor<1x8x10x2xf32>
  %w = graph.broadcast %b : (tensor<2xf32>) -> tensor<1x8x10x2xf32>
  %s = graph.add %y, %w : tensor<1x8x10x2xf32>
  %m = graph.max %s, %z : tensor<1x8x10x2xf32>
  %c = graph.cast %m : (tensor<1x8x10x2xf32>) -> tensor<1x8x10x2xui8>
  return %c : tensor<1x8x10x2xui8>
}

// One number for each row is not alike in all phases.
// CHECK-LABEL: @rows
func.func @rows(%x: tensor<1x4x5x3xf32>, %b: tensor<10x1xf32>) -> tensor<1x8x10x2xf32> {
  %f = graph.constant dense<1.0> : tensor<3x2x2x2xf32>
  // CHECK: graph.conv
  // CHECK: graph.transpose
  // CHECK: graph.add {{.*}} : tensor<1x8x10x2xf32>
  %y = graph.conv_transpose %x, %f {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>,
      channels_last = true} : (tensor<1x4x5x3xf32>, tensor<3x2x2x2xf32>) -> tensor<1x8x10x2xf32>
  %w = graph.broadcast %b : (tensor<10x1xf32>) -> tensor<1x8x10x2xf32>
  %s = graph.add %y, %w : tensor<1x8x10x2xf32>
  return %s : tensor<1x8x10x2xf32>
}
