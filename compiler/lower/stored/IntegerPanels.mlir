// Rows that are rounded in blocks are multiplied as bytes by the codes of weights in these blocks: a
// phase rounds them, and the sums of a block are scaled once.
// RUN: heddle-opt %s --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: vector.reduction <maxui>
// CHECK: math.roundeven {{.*}} : vector<8xf32>
// CHECK: program.store {{.*}} : vector<8xi8>
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[CODES:.*]] = program.load {{.*}} : vector<8xi32>
// CHECK: arith.andi %[[CODES]],
// CHECK: %[[HIGH:.*]] = arith.shrui %[[CODES]],
// CHECK: arith.andi %[[HIGH]],
// CHECK-COUNT-24: program.dot u4_i8 {{.*}} : vector<8xi32>
// CHECK-COUNT-3: program.dot i16_i16 {{.*}} : vector<8xi32>
// CHECK-NOT: program.dot
// CHECK: arith.sitofp
// CHECK: math.fma {{.*}} : vector<8xf32>
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<3x32xf32>) -> tensor<3x8xf32> {
  %w = graph.constant #graph.stored<codes = dense<3> : tensor<32x8xui8>, scales = dense<0.5> : tensor<1x8xf32>> : tensor<32x8xf32>
  %g = graph.group "dense" {mechanism = "contraction", schedule = {mechanism = "contraction", m = 3 : i64, n = 8 : i64}} : tensor<3x8xf32> {
    %y = graph.matmul %x, %w {block = 32} : (tensor<3x32xf32>, tensor<32x8xf32>) -> tensor<3x8xf32>
    graph.yield %y : tensor<3x8xf32>
  }
  return %g : tensor<3x8xf32>
}
