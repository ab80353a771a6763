// F(2 x 2, 3 x 3): a task turns 4 x 4 pixels of its tiles, multiplies them by the filters, which the
// compiler has turned, and turns the sums back.
// RUN: heddle-opt %s --split-input-file --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK-COUNT-16: program.load {{.*}} : vector<8xf32>
// CHECK: arith.subf {{.*}} : vector<8xf32>
// CHECK-COUNT-16: program.store {{.*}} : vector<8xf32>
// Pixels beyond the border are 0.
// CHECK-COUNT-16: program.masked_load
// CHECK: %[[SUMS:.*]]:24 = scf.for
// CHECK-COUNT-3: program.load {{.*}} : vector<8xf32>
// CHECK-COUNT-24: math.fma {{.*}} : vector<8xf32>
// CHECK-NEXT: scf.yield
// CHECK: program.store %[[SUMS]]#0,
// CHECK: program.store %[[SUMS]]#23,
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<1x16x16x16xf32>) -> tensor<1x16x16x32xf32> {
  %w = graph.constant dense<1.0> : tensor<32x16x3x3xf32>
  %g = graph.group "conv" {mechanism = "contraction", schedule = {mechanism = "winograd", tile = 2 : i64}} : tensor<1x16x16x32xf32> {
    %c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>,
      high = array<i64: 1, 1>, channels_last = true} : (tensor<1x16x16x16xf32>, tensor<32x16x3x3xf32>) -> tensor<1x16x16x32xf32>
    graph.yield %c : tensor<1x16x16x32xf32>
  }
  return %g : tensor<1x16x16x32xf32>
}
