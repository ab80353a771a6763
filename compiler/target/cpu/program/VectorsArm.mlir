// Dot products as instructions of AArch64.
// RUN: heddle-opt %s --heddle-lower-program=target=aarch64-i8mm | FileCheck %s
// RUN: not heddle-opt %s --heddle-lower-program=target=aarch64 2>&1 | FileCheck %s --check-prefix=NONE

// RUN: heddle-opt %S/Inputs/shorts_arm.mlir --heddle-lower-program=target=aarch64-bf16 | FileCheck %s --check-prefix=SHORT

// SHORT: llvm.call_intrinsic "llvm.aarch64.neon.bfdot.v4f32.v8bf16"(%arg2, %{{.*}}, %{{.*}})
// NONE: error: 'program.dot' op has no instruction on aarch64

// CHECK-LABEL: func.func @dots
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.aarch64.neon.smull.v4i32"
// CHECK: llvm.call_intrinsic "llvm.aarch64.neon.addp.v4i32"
// CHECK: llvm.call_intrinsic "llvm.aarch64.neon.sdot.v4i32.v16i8"
// CHECK: llvm.call_intrinsic "llvm.aarch64.neon.usdot.v4i32.v16i8"
func.func @dots(%a: vector<4xi32>, %b: vector<4xi32>, %c: vector<4xi32>) -> vector<4xi32> {
  %d = program.dot i16_i16 %a, %b, %c : vector<4xi32>
  %e = program.dot i8_i8 %a, %b, %d : vector<4xi32>
  %f = program.dot u8_i8 %a, %b, %e : vector<4xi32>
  return %f : vector<4xi32>
}
