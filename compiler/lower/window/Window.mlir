// Windows with channels in lanes: nothing is summed across lanes.
// RUN: heddle-opt %s --split-input-file --heddle-lower --canonicalize --cse | FileCheck %s

// The 9 taps are loaded before the loops over pixels; 4 pixels of a row are summed together, row of
// the window by row, where the row lies inside of the image.
// CHECK-LABEL: func.func private @kernel
// CHECK-COUNT-9: program.load {{.*}} : vector<8xf32>
// CHECK: scf.for
// CHECK: scf.if {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-12: math.fma {{.*}} : vector<8xf32>
// CHECK-NEXT: scf.yield
// CHECK: scf.if {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-12: math.fma {{.*}} : vector<8xf32>
// CHECK-NEXT: scf.yield
// CHECK: scf.if {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-12: math.fma {{.*}} : vector<8xf32>
// CHECK-NEXT: scf.yield
// CHECK-COUNT-4: program.store {{.*}} : vector<8xf32>
// CHECK-NOT: vector.reduction
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<1x32x32x16xf32>) -> tensor<1x32x32x16xf32> {
  %w = graph.constant dense<1.0> : tensor<16x1x3x3xf32>
  %g = graph.group "depthwise" {mechanism = "window", schedule = {mechanism = "window", pixels = 4 : i64}} : tensor<1x32x32x16xf32> {
    %c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>,
      high = array<i64: 1, 1>, groups = 16, channels_last = true} : (tensor<1x32x32x16xf32>, tensor<16x1x3x3xf32>) -> tensor<1x32x32x16xf32>
    graph.yield %c : tensor<1x32x32x16xf32>
  }
  return %g : tensor<1x32x32x16xf32>
}

// -----

// CHECK-LABEL: func.func private @kernel
// CHECK: arith.maximumf {{.*}} : vector<8xf32>
// CHECK-NOT: vector.reduction
// CHECK: program.store {{.*}} : vector<8xf32>
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<1x32x32x16xf32>) -> tensor<1x16x16x16xf32> {
  %g = graph.group "pool" {mechanism = "window"} : tensor<1x16x16x16xf32> {
    %p = graph.pool %x {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>, channels_last = true} : (tensor<1x32x32x16xf32>) -> tensor<1x16x16x16xf32>
    graph.yield %p : tensor<1x16x16x16xf32>
  }
  return %g : tensor<1x16x16x16xf32>
}
