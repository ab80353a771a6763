// The gradient of filters: two parts of the rows of the images are summed each by tasks of its own, in
// tiles of 2 channels x 16 filters; a second kernel adds the parts and turns the sums into filters.
// RUN: heddle-opt %s --split-input-file --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: %{{.*}}:4 = scf.for
// CHECK: %[[ROW:.*]]:4 = scf.for
// CHECK-COUNT-2: program.load {{.*}} : vector<8xf32>
// CHECK-COUNT-4: math.fma {{.*}} : vector<8xf32>
// CHECK-NEXT: scf.yield
// CHECK-LABEL: func.func private @kernel
// CHECK-COUNT-16: program.load {{.*}} : vector<8xf32>
// CHECK-COUNT-24: vector.shuffle
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<2x16x16x8xf32>, %dy: tensor<2x16x16x16xf32>) -> tensor<16x8x3x3xf32> {
  %g = graph.group "filters" {mechanism = "pointwise", schedule = {mechanism = "filter_gradient", m = 2 : i64, n = 16 : i64, parts = 2 : i64}} : tensor<16x8x3x3xf32> {
    %c = graph.conv_filter_gradient %x, %dy {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 1, 1>, high = array<i64: 1, 1>, channels_last = true} : (tensor<2x16x16x8xf32>, tensor<2x16x16x16xf32>) -> tensor<16x8x3x3xf32>
    graph.yield %c : tensor<16x8x3x3xf32>
  }
  return %g : tensor<16x8x3x3xf32>
}
