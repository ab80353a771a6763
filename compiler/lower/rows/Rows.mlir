// Reductions over rows: one pass per reduction, with several accumulators; what follows is computed
// once per row.
// RUN: heddle-opt %s --split-input-file --heddle-plan --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: %{{.*}}:4 = scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-4: arith.maximumf %arg{{.*}} : vector<8xf32>
// CHECK-NEXT: scf.yield
// CHECK: %{{.*}}:4 = scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK: %[[SHIFTED:.*]] = arith.subf {{.*}} : vector<8xf32>
// CHECK-NEXT: arith.addf %arg{{.*}}, %[[SHIFTED]] : vector<8xf32>
// CHECK: scf.yield
// CHECK-NOT: iter_args
// CHECK: arith.divf {{.*}} : f32
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<6x64xf32>) -> tensor<6x1xf32> {
  %max = graph.reduce_max %x {axes = array<i64: 1>, keep_dims = true} : (tensor<6x64xf32>) -> tensor<6x1xf32>
  %maxes = graph.broadcast %max : (tensor<6x1xf32>) -> tensor<6x64xf32>
  %shifted = graph.sub %x, %maxes : tensor<6x64xf32>
  %sum = graph.reduce_sum %shifted {axes = array<i64: 1>, keep_dims = true} : (tensor<6x64xf32>) -> tensor<6x1xf32>
  %y = graph.div %sum, %max : tensor<6x1xf32>
  return %y : tensor<6x1xf32>
}
