// What a CPU makes of the program dialect: LLVM's ops, offsets in heddle_call_t, its instructions.
// RUN: heddle-opt %s --heddle-lower-program | FileCheck %s

// CHECK-LABEL: func.func @memory(%arg0: !llvm.ptr, %arg1: i64, %arg2: vector<8xi64>, %arg3: vector<8xi1>) -> !llvm.ptr
// CHECK: %[[AT:.*]] = llvm.getelementptr %arg0[%arg1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK: llvm.load %[[AT]] {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK: llvm.intr.masked.load
// CHECK: %[[PLACES:.*]] = llvm.getelementptr %arg0[%arg2] : (!llvm.ptr, vector<8xi64>) -> !llvm.vec<8 x ptr>, f32
// CHECK: llvm.intr.masked.gather %[[PLACES]],
// CHECK: llvm.intr.memmove
// A pointer in memory has 8 bytes.
// CHECK: llvm.getelementptr %arg0[%arg1] : (!llvm.ptr, i64) -> !llvm.ptr, i64
// CHECK-NOT: program.
func.func @memory(%p: !program.ptr, %i: i64, %places: vector<8xi64>, %mask: vector<8xi1>) -> !program.ptr {
  %a = program.at %p[%i] : f32
  %v = program.load %a align 4 : vector<8xf32>
  %m = program.masked_load %a, %mask, %v align 4 : vector<8xf32>
  %g = program.gather %p[%places], %mask, %m align 4 : vector<8xf32>
  program.store %g, %a align 4 : vector<8xf32>
  program.copy overlapping %p, %a, %i
  %q = program.at %p[%i] : !program.ptr
  return %q : !program.ptr
}

// The run is word 0 of a kernel's arguments; `fail` is the third function after its data.
// CHECK-LABEL: func.func @kernel
// CHECK: %[[WORD:.*]] = llvm.load {{.*}} -> i64
// CHECK: %[[HANDLE:.*]] = llvm.inttoptr %[[WORD]]
// CHECK: %[[OFFSET:.*]] = arith.constant 80 : i64
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[HANDLE]][%[[OFFSET]]]
// CHECK: %[[FAIL:.*]] = llvm.load %[[FIELD]]
// CHECK: llvm.call %[[FAIL]](%[[HANDLE]], %arg1, %arg1, %arg2)
func.func @kernel(%arguments: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr) {
  %run = program.argument %arguments[0] : !program.ptr
  program.fail %run, %begin, %begin, %end
  return
}

// CHECK-LABEL: func.func @launch
// CHECK: %[[KERNEL:.*]] = constant @kernel : (!llvm.ptr, i64, i64, !llvm.ptr) -> ()
// CHECK: builtin.unrealized_conversion_cast %[[KERNEL]]
// CHECK: arith.constant 56 : i64
// CHECK: llvm.call
func.func @launch(%run: !program.ptr, %arguments: !program.ptr, %n: i64) {
  program.launch @kernel(%run, %arguments, %n, %n)
  return
}

// CHECK-LABEL: func.func private @hole{{.*}} attributes {llvm.linkage = #llvm.linkage<linkonce_odr>, passthrough = ["alwaysinline"]}
func.func private @hole(%x: i64) -> i64 attributes {program.inline} {
  %sum, %overflow = program.add %x, %x
  return %sum : i64
}
