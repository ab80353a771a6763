// Functions of kernels: groups that differ in numbers only are one, which reads these from its
// arguments.
// RUN: heddle-opt %s --heddle-plan --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK: func.func private @kernel
// CHECK: %[[WORD:.*]] = program.argument %{{.*}}[3] : i64
// CHECK: vector.broadcast %[[WORD]]
// CHECK-NOT: func.func private @kernel
// CHECK-LABEL: func.func @heddle_program_run
func.func @main(%x: tensor<9x50xf32>) -> (tensor<9x1xf32>, tensor<9x1xf32>, tensor<9x1xf32>, tensor<9x1xf32>) {
  %a = graph.slice %x {starts = #graph.dims<0, 3>, steps = array<i64: 1, 1>} : (tensor<9x50xf32>) -> tensor<9x1xf32> loc("a")
  %b = graph.slice %x {starts = #graph.dims<0, 12>, steps = array<i64: 1, 1>} : (tensor<9x50xf32>) -> tensor<9x1xf32> loc("b")
  %c = graph.slice %x {starts = #graph.dims<0, 21>, steps = array<i64: 1, 1>} : (tensor<9x50xf32>) -> tensor<9x1xf32> loc("c")
  %d = graph.slice %x {starts = #graph.dims<0, 40>, steps = array<i64: 1, 1>} : (tensor<9x50xf32>) -> tensor<9x1xf32> loc("d")
  return %a, %b, %c, %d : tensor<9x1xf32>, tensor<9x1xf32>, tensor<9x1xf32>, tensor<9x1xf32>
}
