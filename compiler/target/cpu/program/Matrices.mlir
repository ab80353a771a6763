// Products in registers that hold matrices as instructions of AMX, and a refusal where there are none.
// RUN: heddle-opt %s --heddle-lower-program=target=x86-64-amx | FileCheck %s
// RUN: not heddle-opt %s --heddle-lower-program=target=x86-64-bf16 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: 'program.multiply_matrices' op has no instruction on x86-64-bf16

// The registers are set up once in a function. Two of the left factor and one of the right have two
// of sums; a line is fetched for each product.
// CHECK-LABEL: func.func @multiply
// CHECK: %[[SHAPES:.*]] = llvm.alloca
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "ldtilecfg ($0)"{{.*}} %[[SHAPES]]
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att
// CHECK-SAME: tilezero %tmm0\0Atilezero %tmm1\0A
// CHECK-SAME: tileloadd (%rax,$6), %tmm2\0Atileloadd 0($1,$8), %tmm4\0Atdpbf16ps %tmm4, %tmm2, %tmm0\0Aprefetcht1 0($3)
// CHECK-SAME: tileloadd (%rdx,$6), %tmm3\0Atdpbf16ps %tmm4, %tmm3, %tmm1\0Aprefetcht1 64($3)
// CHECK-SAME: addq $$64, %rax\0Aaddq $$1024, $1\0Aaddq $$128, $3
// CHECK-SAME: tilestored %tmm0, 0($4,$8)\0Atilestored %tmm1, 1024($4,$8)\0A"
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "tilerelease"
// CHECK-NEXT: return
func.func @multiply(%p: !program.ptr, %n: i64) {
  program.multiply_matrices bf16_bf16 %p, %p[%n, 64, %n], %p pieces %n steps %n fetches 2 from %p rows 32 columns 16
  return
}

// Four registers of sums leave three to the right factor.
// CHECK-LABEL: func.func @wide
// CHECK: tileloadd 128($1,$8), %tmm7\0Atdpbf16ps %tmm7, %tmm4, %tmm2\0Atileloadd 192($1,$8), %tmm5\0Atdpbf16ps %tmm5, %tmm4, %tmm3
func.func @wide(%p: !program.ptr, %n: i64) {
  program.multiply_matrices bf16_bf16 %p, %p[%n, 64, %n], %p pieces %n steps %n fetches 0 from %p rows 16 columns 64
  return
}

// CHECK-LABEL: func.func @bytes
// CHECK-COUNT-1: ldtilecfg
// CHECK-NOT: ldtilecfg
// CHECK: tdpbssd %tmm2, %tmm1, %tmm0
// CHECK: tdpbusd %tmm2, %tmm1, %tmm0
func.func @bytes(%p: !program.ptr, %n: i64) {
  program.multiply_matrices i8_i8 %p, %p[%n, 64, %n], %p pieces %n steps %n fetches 0 from %p rows 16 columns 16
  program.multiply_matrices u8_i8 %p, %p[%n, 64, %n], %p pieces %n steps %n fetches 0 from %p rows 16 columns 16
  return
}

// Steps of 8 words: the register of the left factor has rows of 32 bytes, those of the right one 8 rows.
// CHECK-LABEL: func.func @words
// CHECK: dense<[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 32, 0, 64, 0, {{.*}}, 16, 16, 8, 8, 8, 8, 8, 8,
// CHECK: addq $$32, %rax\0Aaddq $$512, $1
func.func @words(%p: !program.ptr, %n: i64) {
  program.multiply_matrices i8_i8 %p, %p[%n, 32, %n], %p pieces %n steps %n fetches 0 from %p rows 16 columns 16 {words = 8 : i64}
  return
}
