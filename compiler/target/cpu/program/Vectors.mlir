// Dot products, permutations and tables as instructions of x86, and a refusal where there is none.
// Products of bf16 are made of products of f32 then.
// RUN: heddle-opt %s --heddle-lower-program=target=icelake-server | FileCheck %s
// RUN: not heddle-opt %s --heddle-lower-program=target=x86-64-v3 2>&1 | FileCheck %s --check-prefix=NONE

// RUN: heddle-opt %S/Inputs/shorts.mlir --heddle-lower-program=target=x86-64-bf16 | FileCheck %s --check-prefix=SHORT
// RUN: heddle-opt %S/Inputs/shorts.mlir --heddle-lower-program=target=x86-64-v3 | FileCheck %s --check-prefix=FLOATS

// RUN: heddle-opt %S/Inputs/halves.mlir --heddle-lower-program=target=x86-64-v4 | FileCheck %s --check-prefix=HALVES
// HALVES: %[[WORDS:.*]] = llvm.call_intrinsic "llvm.x86.avx512.pmaddubs.w.512"
// HALVES: arith.addi %{{.*}}, %[[WORDS]] : vector<32xi16>

// SHORT: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%arg2, %{{.*}}, %{{.*}}) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>)
// FLOATS-COUNT-2: math.fma {{.*}} : vector<16xf32>
// NONE: error: 'program.dot' op has no instruction on x86-64-v3

// CHECK-LABEL: func.func @dots
// CHECK: %[[PRODUCTS:.*]] = llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"
// CHECK: %[[SUM:.*]] = arith.addi %arg2, %[[PRODUCTS]]
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%[[SUM]], %arg0, %arg1)
func.func @dots(%a: vector<16xi32>, %b: vector<16xi32>, %c: vector<16xi32>) -> vector<16xi32> {
  %d = program.dot i16_i16 %a, %b, %c : vector<16xi32>
  %e = program.dot u8_i8 %a, %b, %d : vector<16xi32>
  return %e : vector<16xi32>
}

// CHECK-LABEL: func.func @permute
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.si.512"(%arg0, %arg1)
func.func @permute(%x: vector<16xi32>, %places: vector<16xi32>) -> vector<16xi32> {
  %y = program.permute %x, %places : vector<16xi32>
  return %y : vector<16xi32>
}

// Of 256 bytes, each instruction looks into 128.
// CHECK-LABEL: func.func @lookup
// CHECK: %[[HIGH:.*]] = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK: %[[LOW:.*]] = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK: arith.select %{{.*}}, %[[HIGH]], %[[LOW]]
func.func @lookup(%table: !program.ptr, %places: vector<16xi8>) -> vector<16xi8> {
  %y = program.lookup %table, %places : vector<16xi8>
  return %y : vector<16xi8>
}
