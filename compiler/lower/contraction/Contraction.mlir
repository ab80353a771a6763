// A product with a constant right operand: a register tile of fused multiply-adds over packed
// panels, and its epilogue on the tile's registers.
// RUN: heddle-opt %s --split-input-file --heddle-plan --heddle-lower --canonicalize --cse | FileCheck %s

// 6 x 16 numbers in 12 registers; two loads of the panel and one element per row for each step.
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[TILE:.*]]:12 = scf.for {{.*}} iter_args(
// CHECK-COUNT-2: program.load {{.*}} : vector<8xf32>
// CHECK-COUNT-12: math.fma {{.*}} : vector<8xf32>
// CHECK-NOT: math.fma
// CHECK: scf.yield
// CHECK: %[[BIAS:.*]] = program.load {{.*}} : vector<8xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[TILE]]#0, %[[BIAS]] : vector<8xf32>
// CHECK: program.store %[[Y]]
func.func @main(%x: tensor<48x64xf32>, %b: tensor<96xf32>) -> tensor<48x96xf32> {
  %w = graph.constant dense<1.0> : tensor<64x96xf32>
  %product = graph.matmul %x, %w : (tensor<48x64xf32>, tensor<64x96xf32>) -> tensor<48x96xf32>
  %wide = graph.broadcast %b : (tensor<96xf32>) -> tensor<48x96xf32>
  %y = graph.add %product, %wide : tensor<48x96xf32>
  return %y : tensor<48x96xf32>
}

// -----

// A right operand that is computed in the run is packed by a phase of its own, where the left one
// does not stay in the L2.
// CHECK-LABEL: func.func private @kernel
// CHECK-NOT: math.fma
// CHECK: program.store
// CHECK-LABEL: func.func private @kernel
// CHECK: math.fma
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<65536x64xf32>, %w: tensor<64x96xf32>) -> tensor<65536x96xf32> {
  %y = graph.matmul %x, %w : (tensor<65536x64xf32>, tensor<64x96xf32>) -> tensor<65536x96xf32>
  return %y : tensor<65536x96xf32>
}

// -----

// Where it does, the task that multiplies by panels packs them.
// CHECK-LABEL: func.func private @kernel
// CHECK: program.store
// CHECK: math.fma
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<48x64xf32>, %w: tensor<64x96xf32>) -> tensor<48x96xf32> {
  %y = graph.matmul %x, %w : (tensor<48x64xf32>, tensor<64x96xf32>) -> tensor<48x96xf32>
  return %y : tensor<48x96xf32>
}

// -----

// Where each of many right operands meets rows of its own, the task that multiplies packs it.
// CHECK-LABEL: func.func private @kernel
// CHECK: program.store
// CHECK: math.fma
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<512x48x64xf32>, %w: tensor<512x64x96xf32>) -> tensor<512x48x96xf32> {
  %y = graph.matmul %x, %w : (tensor<512x48x64xf32>, tensor<512x64x96xf32>) -> tensor<512x48x96xf32>
  return %y : tensor<512x48x96xf32>
}

// -----

// What memory has as one panel is read where it is.
// CHECK-LABEL: func.func private @kernel
// CHECK-NOT: program.store
// CHECK: math.fma
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<48x64xf32>, %w: tensor<64x16xf32>) -> tensor<48x16xf32> {
  %y = graph.matmul %x, %w : (tensor<48x64xf32>, tensor<64x16xf32>) -> tensor<48x16xf32>
  return %y : tensor<48x16xf32>
}

// -----

// One row: the right operand is read as it lies, eight of its rows at a time, and sums are in the L1.
// CHECK-LABEL: func.func private @kernel
// CHECK: scf.for
// CHECK: %[[SUM:.*]] = program.load {{.*}} : vector<8xf32>
// CHECK-COUNT-8: math.fma {{.*}} : vector<8xf32>
// CHECK-NEXT: program.store {{.*}} : vector<8xf32>
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<1x64xf32>, %w: tensor<64x96xf32>) -> tensor<1x96xf32> {
  %y = graph.matmul %x, %w : (tensor<1x64xf32>, tensor<64x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}
