// Quotients in steps and conversions to integers, where the CPU has what they need.
// RUN: heddle-opt %s --heddle-cpu-arithmetic="fma=true x86=true" | FileCheck %s
// RUN: heddle-opt %s --heddle-cpu-arithmetic | FileCheck %s --check-prefix=PLAIN

// CHECK-LABEL: @quotient
// CHECK: %[[LOW:.*]] = arith.mulf %arg0
// CHECK: %[[ABOUT:.*]] = math.fma %arg0, %{{.*}}, %[[LOW]]
// CHECK: %[[REST:.*]] = math.fma %[[ABOUT]], %{{.*}}, %arg0
// CHECK: math.fma %[[REST]], %{{.*}}, %[[ABOUT]]
// PLAIN-LABEL: @quotient
// PLAIN: arith.divf %arg0, %{{[a-z0-9_]+}} : vector<16xf32>
func.func @quotient(%x: vector<16xf32>) -> vector<16xf32> {
  %s = arith.constant dense<0.3> : vector<16xf32>
  %q = arith.divf %x, %s {program.steps} : vector<16xf32>
  return %q : vector<16xf32>
}

// CHECK-LABEL: @rounded
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.cvtps2dq.512"(%arg0
// CHECK-NOT: arith.select
// PLAIN-LABEL: @rounded
// PLAIN: arith.select
func.func @rounded(%x: vector<16xf32>) -> vector<16xi32> {
  %lowest = arith.constant dense<-2147483648> : vector<16xi32>
  %whole = math.roundeven %x : vector<16xf32>
  %integer = arith.fptosi %whole : vector<16xf32> to vector<16xi32>
  %ordered = arith.cmpf ord, %whole, %whole : vector<16xf32>
  %y = arith.select %ordered, %integer, %lowest : vector<16xi1>, vector<16xi32>
  return %y : vector<16xi32>
}

// What a NaN becomes is no other number than the instruction's.
// CHECK-LABEL: @other
// CHECK: arith.select
func.func @other(%x: vector<8xf32>) -> vector<8xi32> {
  %none = arith.constant dense<0> : vector<8xi32>
  %integer = arith.fptosi %x : vector<8xf32> to vector<8xi32>
  %ordered = arith.cmpf ord, %x, %x : vector<8xf32>
  %y = arith.select %ordered, %integer, %none : vector<8xi1>, vector<8xi32>
  return %y : vector<8xi32>
}
