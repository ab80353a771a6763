// Many rows by weights in blocks, as bf16: a task makes pairs of bf16 of the codes of its panels, each less
// the zero of all and times its scale, before tiles of registers that hold matrices read them. Few rows
// are rounded to 8 bits and meet the same codes as integers.
// RUN: heddle-opt %s --heddle-lower=target=x86-64-amx --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: vector.reduction <maxui>
// CHECK-LABEL: func.func private @kernel
// CHECK: program.multiply_matrices i8_i8
// CHECK-LABEL: func.func private @kernel
// CHECK: program.load {{.*}} : vector<16xi32>
// CHECK: arith.andi
// CHECK: arith.sitofp {{.*}} : vector<16xi32> to vector<16xf32>
// CHECK: math.fma
// CHECK-NOT: arith.truncf
// CHECK: program.multiply_matrices bf16_bf16 {{.*}} rows 32 columns 32
// CHECK-NOT: i8_i8
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<?x128xf32, #graph.dims<"n", 128>>) -> tensor<?x32xf32, #graph.dims<"n", 32>> {
  %w = graph.constant #graph.stored<codes = dense<3> : tensor<128x32xui8>, scales = dense<0.5> : tensor<4x32xf32>, zeros = dense<8.0> : tensor<4x32xf32>> : tensor<128x32xf32>
  %g = graph.group "dense" {mechanism = "contraction", precision = "bf16", schedule = {mechanism = "contraction", m = 32 : i64, n = 32 : i64, versions = [{mechanism = "contraction", m = 16 : i64, n = 16 : i64, precision = "f32", when = {n = 32 : i64}}]}} : tensor<?x32xf32, #graph.dims<"n", 32>> {
    %y = graph.matmul %x, %w {block = 32} : (tensor<?x128xf32, #graph.dims<"n", 128>>, tensor<128x32xf32>) -> tensor<?x32xf32, #graph.dims<"n", 32>>
    graph.yield %y : tensor<?x32xf32, #graph.dims<"n", 32>>
  }
  return %g : tensor<?x32xf32, #graph.dims<"n", 32>>
}
