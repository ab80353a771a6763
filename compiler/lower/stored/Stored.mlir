// Weights that are stored as codes are decoded where a register tile reads them. All codes are below 16,
// so that two lie in a byte.
// RUN: heddle-opt %s --split-input-file --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: %{{.*}}:24 = scf.for
// CHECK: %[[CODES:.*]] = program.load {{.*}} : vector<8xi8>
// CHECK: %[[WIDE:.*]] = arith.extui %[[CODES]] : vector<8xi8> to vector<8xi32>
// CHECK: arith.andi %[[WIDE]],
// CHECK: arith.shrui %[[WIDE]],
// CHECK: arith.mulf {{.*}} : vector<8xf32>
// CHECK-COUNT-24: math.fma {{.*}} : vector<8xf32>
// CHECK-NEXT: scf.yield
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<48x128xf32>) -> tensor<48x64xf32> {
  %w = graph.constant #graph.stored<codes = dense<3> : tensor<128x64xui8>, scales = dense<0.5> : tensor<1x64xf32>> : tensor<128x64xf32>
  %g = graph.group "dense" {mechanism = "contraction"} : tensor<48x64xf32> {
    %y = graph.matmul %x, %w : (tensor<48x128xf32>, tensor<128x64xf32>) -> tensor<48x64xf32>
    graph.yield %y : tensor<48x64xf32>
  }
  return %g : tensor<48x64xf32>
}
