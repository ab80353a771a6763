// The program around the kernels: the run, which launches them, and the sizes, computed and checked
// once per call.
// RUN: heddle-opt %s --split-input-file --heddle-plan --heddle-lower --canonicalize --cse | FileCheck %s

// Nothing is started where the run has failed; little work is done by the thread of the run.
// CHECK: func.func private @[[START:start_kernel_[0-9a-f]*]]
// CHECK: program.status
// CHECK: %[[IS_LITTLE:.*]] = arith.cmpi slt, {{.*}}, %c16384_i64
// CHECK: scf.if %[[IS_LITTLE]]
// CHECK: func.call @kernel
// CHECK: } else {
// CHECK: program.launch @kernel
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: call @[[START]]
// Products of sizes end the run if they leave int64.
// CHECK-LABEL: func.func @heddle_program_sizes
// CHECK: program.add
// CHECK: %[[COUNT:.*]] = arith.addi
// CHECK: arith.cmpi ne, %[[COUNT]], %c0_i64
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
// CHECK: scf.for {{.*}} = %c0_i64 to %c2_i64
// CHECK: func.call @[[KERNEL]]
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: call @start_[[REGION]]
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

// -----

// A branch asks once of sizes that nothing before it has asked of; of its result's, the entry has.
// CHECK-LABEL: func.func @heddle_program_run
// CHECK-NOT: program.fail
// CHECK: scf.if {{.*}} -> (!program.ptr) {
// CHECK: program.fail
// CHECK-NOT: program.fail
// CHECK: } else {
// CHECK: program.fail
// CHECK-NOT: program.fail
// CHECK-LABEL: func.func @heddle_program_sizes
func.func @main(%c: tensor<i1>, %x: tensor<?x8xf32, #graph.dims<"n", 8>>) -> tensor<?x3xf32, #graph.dims<"n", 3>> {
  %y = graph.if %c : (tensor<i1>) -> tensor<?x3xf32, #graph.dims<"n", 3>> {
    %a = graph.slice %x {starts = #graph.dims<0, 1>, steps = array<i64: 1, 1>} : (tensor<?x8xf32, #graph.dims<"n", 8>>) -> tensor<?x4xf32, #graph.dims<"n", 4>>
    %b = graph.neg %a : tensor<?x4xf32, #graph.dims<"n", 4>> loc("b")
    %d = graph.slice %b {starts = #graph.dims<0, 1>, steps = array<i64: 1, 1>} : (tensor<?x4xf32, #graph.dims<"n", 4>>) -> tensor<?x3xf32, #graph.dims<"n", 3>>
    graph.yield %d : tensor<?x3xf32, #graph.dims<"n", 3>>
  } else {
    %e = graph.slice %x {starts = #graph.dims<0, 1>, steps = array<i64: 1, 1>} : (tensor<?x8xf32, #graph.dims<"n", 8>>) -> tensor<?x4xf32, #graph.dims<"n", 4>>
    %f = graph.exp %e : tensor<?x4xf32, #graph.dims<"n", 4>> loc("f")
    %g = graph.slice %f {starts = #graph.dims<0, 1>, steps = array<i64: 1, 1>} : (tensor<?x4xf32, #graph.dims<"n", 4>>) -> tensor<?x3xf32, #graph.dims<"n", 3>>
    graph.yield %g : tensor<?x3xf32, #graph.dims<"n", 3>>
  }
  return %y : tensor<?x3xf32, #graph.dims<"n", 3>>
}

// -----

// A size that is a value of an input is bound before the sizes are computed, which take it as they
// take those of shapes; the run finds it with them.
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: program.area %{{.*}} symbols
// CHECK-NOT: program.alloc
// CHECK-LABEL: func.func @heddle_program_sizes
// CHECK: %[[SYMBOL:.*]] = program.load
// CHECK: %[[IS_UNBOUND:.*]] = arith.cmpi slt, %[[SYMBOL]], %c0_i64
// CHECK: arith.select %[[IS_UNBOUND]], %c-1_i64
// CHECK-LABEL: func.func @heddle_program_bind
// CHECK: program.area %{{.*}} inputs
// CHECK: scf.if
// CHECK: program.fail
// CHECK: program.store
func.func @main(%k: tensor<1xi32>) -> tensor<?xf32, #graph.dims<"$k.0">> {
  %wide = graph.cast %k : (tensor<1xi32>) -> tensor<1xi64> loc("wide")
  graph.bind_sizes %wide {symbols = #graph.dims<"$k.0">, message = "%lld elements"} : tensor<1xi64>
  %c = graph.constant dense<1.0> : tensor<1xf32>
  %y = graph.broadcast %c : (tensor<1xf32>) -> tensor<?xf32, #graph.dims<"$k.0">> loc("y")
  return %y : tensor<?xf32, #graph.dims<"$k.0">>
}

// -----

// What reads an input last, and at the elements that it writes, writes into its memory.
// CHECK-LABEL: func.func @heddle_program_run
// CHECK-NOT: program.copy
func.func @main(%x: tensor<64xf32>, %g: tensor<64xf32>) -> (tensor<64xf32> {graph.shares = 0 : i64}) {
  %y = graph.sub %x, %g : tensor<64xf32> loc("y")
  return %y : tensor<64xf32>
}

// -----

// Near miss: elements change places, so the result is copied when all have read the input.
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: program.copy
func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32> {graph.shares = 0 : i64}) {
  %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("t")
  %y = graph.neg %t : tensor<8x8xf32> loc("y")
  return %y : tensor<8x8xf32>
}

// -----

// The first iteration packs the right operand for all.
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: scf.for %[[I:.*]] = %c0_i64
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[I]], %c0_i64
// CHECK: scf.if %[[IS_FIRST]] {
// CHECK-NEXT: func.call @[[PACK:start_kernel_[0-9a-f]*]]
// CHECK-NOT: @[[PACK]]
// CHECK: scf.yield
func.func @main(%h: tensor<20x40xf32>, %xs: tensor<5x20x40xf32>, %w: tensor<40x40xf32>) -> tensor<20x40xf32> {
  %r = graph.scan %h, %xs {state_count = 1} : (tensor<20x40xf32>, tensor<5x20x40xf32>) -> tensor<20x40xf32> {
  ^bb0(%s: tensor<20x40xf32>, %x: tensor<20x40xf32>):
    %p = graph.matmul %s, %w : (tensor<20x40xf32>, tensor<40x40xf32>) -> tensor<20x40xf32> loc("p")
    %y = graph.add %p, %x : tensor<20x40xf32> loc("y")
    graph.yield %y : tensor<20x40xf32>
  }
  return %r : tensor<20x40xf32>
}

// -----

// What an iteration finds it packs itself.
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: scf.for %[[I:.*]] = %c0_i64
// CHECK-NOT: arith.cmpi eq, %[[I]], %c0_i64
// CHECK: scf.yield
func.func @main(%h: tensor<20x40xf32>, %ws: tensor<5x40x40xf32>) -> tensor<20x40xf32> {
  %r = graph.scan %h, %ws {state_count = 1} : (tensor<20x40xf32>, tensor<5x40x40xf32>) -> tensor<20x40xf32> {
  ^bb0(%s: tensor<20x40xf32>, %w: tensor<40x40xf32>):
    %p = graph.matmul %s, %w : (tensor<20x40xf32>, tensor<40x40xf32>) -> tensor<20x40xf32> loc("p")
    graph.yield %p : tensor<20x40xf32>
  }
  return %r : tensor<20x40xf32>
}

// -----

// Each op of the program is where its op of the model is; of an op that has no place, the nearest
// one says it.
// RUN: heddle-opt %s --split-input-file --heddle-plan --heddle-lower --mlir-print-debuginfo --mlir-pretty-debuginfo | FileCheck %s --check-prefix=PLACE
// PLACE: program.service nonzero {{.*}} "near"
func.func @main(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<1x?xi64, #graph.dims<1, "$n">> {
  %y = graph.less %x, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> loc("near")
  %p = graph.nonzero %y : (tensor<4xi1>) -> tensor<1x?xi64, #graph.dims<1, "$n">> loc(unknown)
  return %p : tensor<1x?xi64, #graph.dims<1, "$n">> loc(unknown)
} loc(unknown)
