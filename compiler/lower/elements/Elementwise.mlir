// A group is one loop nest: nothing between its ops touches memory, its last axis is in lanes of the
// target's vectors, and a mask or narrower vectors take what is left.
// RUN: heddle-opt %s --split-input-file --heddle-plan --heddle-lower --canonicalize --cse | FileCheck %s
// RUN: heddle-opt %s --split-input-file --heddle-plan --heddle-lower="target=x86-64-v4" --canonicalize --cse | FileCheck %s --check-prefix=WIDE

// CHECK-LABEL: func.func private @kernel
// CHECK: scf.for
// CHECK: %[[X:.*]] = program.load {{.*}} : vector<8xf32>
// CHECK: %[[ROW:.*]] = program.load {{.*}} : vector<8xf32>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[X]], %[[ROW]] : vector<8xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.negf %[[SUM]] : vector<8xf32>
// CHECK-NOT: program.load
// CHECK: program.store %[[Y]]
// CHECK-NOT: program.store
// CHECK-LABEL: @heddle_program_run
// WIDE-LABEL: func.func private @kernel
// WIDE: arith.addf {{.*}} : vector<16xf32>
func.func @main(%x: tensor<4x32xf32>, %row: tensor<32xf32>) -> tensor<4x32xf32> {
  %wide = graph.broadcast %row : (tensor<32xf32>) -> tensor<4x32xf32>
  %sum = graph.add %x, %wide : tensor<4x32xf32>
  %y = graph.neg %sum : tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// -----

// An element that all lanes read is loaded once and broadcast.
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[ONE:.*]] = program.load {{.*}} : f32
// CHECK: vector.broadcast %[[ONE]] : f32 to vector<8xf32>
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<4x32xf32>, %column: tensor<4x1xf32>) -> tensor<4x32xf32> {
  %wide = graph.broadcast %column : (tensor<4x1xf32>) -> tensor<4x32xf32>
  %y = graph.mul %x, %wide : tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// -----

// A size that is known only at run time: its tail is masked.
// CHECK-LABEL: func.func private @kernel
// CHECK: arith.negf {{.*}} : vector<8xf32>
// CHECK: %[[MASK:.*]] = arith.cmpi sgt, {{.*}} : vector<8xi32>
// CHECK: program.masked_load %{{.*}}, %[[MASK]],
// CHECK: program.masked_store %{{.*}}, %{{.*}}, %[[MASK]]
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<?xf32, #graph.dims<"n">>) -> tensor<?xf32, #graph.dims<"n">> {
  %y = graph.neg %x : tensor<?xf32, #graph.dims<"n">>
  return %y : tensor<?xf32, #graph.dims<"n">>
}
