// A scatter whose updates may meet: a kernel checks all indices before the first element is written, the
// next copies the operand and carries the updates out in their order.
// RUN: heddle-opt %s --split-input-file --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: program.masked_load {{.*}} : vector<8xi64>
// CHECK-COUNT-2: program.fail
// CHECK-LABEL: func.func private @kernel
// CHECK: program.copy
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[UPDATE:.*]] = program.load {{.*}} : f32
// CHECK: program.store %[[UPDATE]], {{.*}} : f32
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<16x64xf32>, %i: tensor<16x3xi64>, %u: tensor<16x3xf32>) -> tensor<16x64xf32> {
  %g = graph.group "scatter" {mechanism = "serial"} : tensor<16x64xf32> {
    %y = graph.scatter_elements %x, %i, %u {axis = 1} : (tensor<16x64xf32>, tensor<16x3xi64>, tensor<16x3xf32>) -> tensor<16x64xf32>
    graph.yield %y : tensor<16x64xf32>
  }
  return %g : tensor<16x64xf32>
}
