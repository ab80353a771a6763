// The program around the kernels: the run, which launches them, and the sizes, computed and checked
// once per call.
// RUN: heddle-opt %s --split-input-file --heddle-plan --heddle-lower --canonicalize --cse | FileCheck %s

// Little work is done by the thread of the run, where the sizes say so.
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: %[[IS_LITTLE:.*]] = arith.cmpi slt, {{.*}}, %c16384_i64
// CHECK: scf.if %[[IS_LITTLE]]
// CHECK: func.call @kernel
// CHECK: } else {
// CHECK: program.launch @kernel
// Products of sizes end the run if they leave int64.
// CHECK-LABEL: func.func @heddle_program_sizes
// CHECK: %{{.*}}, %[[OVERFLOW:.*]] = program.mul
// CHECK: %[[EITHER:.*]] = arith.ori {{.*}}, %[[OVERFLOW]]
// CHECK-NEXT: program.freeze %[[EITHER]]
func.func @main(%x: tensor<?x?xf32, #graph.dims<"a", "b">>) -> tensor<?x?xf32, #graph.dims<"a", "b">> {
  %y = graph.neg %x : tensor<?x?xf32, #graph.dims<"a", "b">>
  return %y : tensor<?x?xf32, #graph.dims<"a", "b">>
}

// -----

// Two groups of one text are one function, and independent ones are launched together: a dispatcher
// gives each its part of the tasks.
// CHECK: func.func private @[[KERNEL:kernel_[0-9a-f]*]]
// CHECK-NOT: func.func private @kernel
// CHECK: func.func private @[[REGION:region[0-9]*]]
// CHECK-COUNT-2: func.call @[[KERNEL]]
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: program.launch @[[REGION]]
// CHECK-NOT: @[[KERNEL]]
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = graph.reduce_sum %x {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64xf32> loc("a")
  %b = graph.reduce_sum %y {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64xf32> loc("b")
  return %a, %b : tensor<64xf32>, tensor<64xf32>
}

// -----

// A branch of the model is a branch of the program, and each side launches its own.
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: scf.if
// CHECK: @kernel
// CHECK: } else {
// CHECK: @kernel
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %c : (tensor<i1>) -> tensor<4xf32> {
    %a = graph.neg %x : tensor<4xf32> loc("a")
    graph.yield %a : tensor<4xf32>
  } else {
    %b = graph.exp %x : tensor<4xf32> loc("b")
    graph.yield %b : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
