// Elements on their own, the last dimension in lanes; where the shapes allow it, as one dimension.
// RUN: heddle-opt %s --split-input-file --heddle-lower --canonicalize --cse | FileCheck %s

// The 64 x 100 elements are walked as one row: no tail, no mask.
// CHECK-LABEL: func.func private @kernel
// CHECK-DAG: %[[ALL:.*]] = arith.constant 6400 : i64
// CHECK: scf.for {{.*}} to %[[ALL]] step
// CHECK: %[[X:.*]] = program.load {{.*}} : vector<8xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]] : vector<8xf32>
// CHECK: program.store %[[Y]]
// CHECK-NOT: masked
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %g = graph.group "g" {mechanism = "pointwise"} : tensor<64x100xf32> {
    %y = graph.add %x, %x : tensor<64x100xf32>
    graph.yield %y : tensor<64x100xf32>
  }
  return %g : tensor<64x100xf32>
}

// -----

// A transpose turns squares of 8 x 8 elements in registers: three steps of 8 shuffles.
// CHECK-LABEL: func.func private @kernel
// CHECK-COUNT-8: program.masked_load
// CHECK-COUNT-24: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<64x128xf32>) -> tensor<128x64xf32> {
  %g = graph.group "g" {mechanism = "pointwise"} : tensor<128x64xf32> {
    %y = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<64x128xf32>) -> tensor<128x64xf32>
    graph.yield %y : tensor<128x64xf32>
  }
  return %g : tensor<128x64xf32>
}

// -----

// A reduction over leading dimensions keeps 64 columns in registers while it goes down the rows.
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[PART:.*]] = %{{.*}}) -> (vector<64xf32>)
// CHECK: %[[X:.*]] = program.load {{.*}} : vector<64xf32>
// CHECK-NEXT: arith.addf {{.*}} : vector<64xf32>
// CHECK-NEXT: scf.yield
// CHECK: program.store %[[SUM]]
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<64x128xf32>) -> tensor<128xf32> {
  %g = graph.group "g" {mechanism = "pointwise"} : tensor<128xf32> {
    %y = graph.reduce_sum %x {axes = array<i64: 0>, keep_dims = false} : (tensor<64x128xf32>) -> tensor<128xf32>
    graph.yield %y : tensor<128xf32>
  }
  return %g : tensor<128xf32>
}
