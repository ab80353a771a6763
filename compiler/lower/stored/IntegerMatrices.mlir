// The same where there are registers that hold matrices: several tiles share unpacked panels. Codes of
// 4 bits less their zero are bytes with a sign; sums of a block, ahead of those that are scaled, are
// products of 8 words.
// RUN: heddle-opt %s --heddle-lower=target=x86-64-amx --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: vector.reduction <maxui>
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[CODES:.*]] = program.load {{.*}} : vector<16xi32>
// CHECK: %[[LOW:.*]] = arith.andi %[[CODES]],
// CHECK: %[[SIGNED:.*]] = arith.ori %[[LOW]],
// CHECK: arith.subi %[[SIGNED]],
// CHECK: arith.xori
// CHECK: arith.shrui %[[CODES]],
// CHECK: program.multiply_matrices i8_i8 {{.*}}, 32, %{{.*}} rows 16 columns 16 {words = 8 : i64}
// CHECK: program.multiply_matrices i8_i8 {{.*}}, 32, %{{.*}} rows 16 columns 16 {words = 8 : i64}
// CHECK: scf.for
// CHECK: program.multiply_matrices
// CHECK: arith.sitofp {{.*}} : vector<16xi32> to vector<16xf32>
// CHECK: math.fma {{.*}} : vector<16xf32>
// CHECK-NOT: program.dot
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<48x128xf32>) -> tensor<48x16xf32> {
  %w = graph.constant #graph.stored<codes = dense<3> : tensor<128x16xui8>, scales = dense<0.5> : tensor<4x16xf32>, zeros = dense<8.0> : tensor<4x16xf32>> : tensor<128x16xf32>
  %g = graph.group "dense" {mechanism = "contraction", schedule = {mechanism = "contraction", m = 16 : i64, n = 16 : i64}} : tensor<48x16xf32> {
    %y = graph.matmul %x, %w {block = 32} : (tensor<48x128xf32>, tensor<128x16xf32>) -> tensor<48x16xf32>
    graph.yield %y : tensor<48x16xf32>
  }
  return %g : tensor<48x16xf32>
}
