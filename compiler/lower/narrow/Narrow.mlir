// A convolution of 3 filters: 55 values of a row of the window lie in lanes, the tail of 7 under a mask,
// and lanes are added up once for each sum. A first kernel lays out the image with its border.
// RUN: heddle-opt %s --split-input-file --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: program.store
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[SUMS:.*]]:6 = scf.for
// CHECK: %[[ROW:.*]]:6 = scf.for {{.*}} step
// CHECK-COUNT-6: math.fma {{.*}} : vector<8xf32>
// CHECK: program.masked_load {{.*}} : vector<8xf32>
// CHECK: math.fma {{.*}} %[[ROW]]#0
// CHECK: vector.shuffle %[[SUMS]]#0, %[[SUMS]]#4
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<1x32x32x11xf32>) -> tensor<1x32x32x3xf32> {
  %w = graph.constant dense<1.0> : tensor<3x11x5x5xf32>
  %g = graph.group "conv" {mechanism = "contraction", schedule = {mechanism = "narrow", m = 2 : i64}} : tensor<1x32x32x3xf32> {
    %c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 2, 2>,
      high = array<i64: 2, 2>, channels_last = true} : (tensor<1x32x32x11xf32>, tensor<3x11x5x5xf32>) -> tensor<1x32x32x3xf32>
    graph.yield %c : tensor<1x32x32x3xf32>
  }
  return %g : tensor<1x32x32x3xf32>
}
