// The passes of a CPU by themselves, one after the other: nothing but LLVM is left.
//
// RUN: heddle-opt %s --heddle-lower-program=target=x86-64-v3 --heddle-cpu-arithmetic="fma=true" --heddle-cpu-libm --heddle-cpu-loops --heddle-cpu-signatures --heddle-cpu-vectors --heddle-cpu-bodies --canonicalize | FileCheck %s
// RUN: heddle-opt %s --heddle-cpu-loops | FileCheck %s --check-prefix=LOOPS
// RUN: heddle-opt %s --heddle-cpu-signatures --heddle-cpu-halves | FileCheck %s --check-prefix=BITS
// RUN: heddle-opt %s --heddle-cpu-signatures --heddle-cpu-halves=f16=false | FileCheck %s --check-prefix=F16

// CHECK-LABEL: llvm.func @sum
// CHECK-NOT: builtin.unrealized_conversion_cast
// CHECK: llvm.fadd
// CHECK-NOT: builtin.unrealized_conversion_cast
// CHECK: llvm.return
// LOOPS-LABEL: func.func @sum
// LOOPS: cf.cond_br
// LOOPS-NOT: scf.for
func.func @sum(%count: i64, %x: f32) -> f32 {
  %none = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %sum = scf.for %i = %none to %count step %one iter_args(%so_far = %x) -> (f32) : i64 {
    %next = arith.addf %so_far, %x : f32
    scf.yield %next : f32
  }
  return %sum : f32
}

// CHECK-LABEL: llvm.func @angle
// CHECK: llvm.call @acos
// CHECK-LABEL: llvm.func @power
// CHECK-NOT: llvm.call
// CHECK: llvm.return
func.func @angle(%x: f64) -> f64 {
  %angle = math.acos %x : f64
  return %angle : f64
}

func.func @power(%x: f32) -> f32 {
  %power = math.exp %x : f32
  return %power : f32
}

// BITS-LABEL: llvm.func @same(
// BITS-SAME: i16) -> i16
// F16-LABEL: llvm.func @same(
// F16-SAME: f16) -> f16
func.func @same(%x: f16) -> f16 {
  return %x : f16
}
