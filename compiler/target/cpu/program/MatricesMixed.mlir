// A function sets up its registers once: products of steps with other numbers of words are refused.
// RUN: not heddle-opt %s --heddle-lower-program=target=x86-64-amx 2>&1 | FileCheck %s

// CHECK: error: 'program.multiply_matrices' op wants registers of other sizes than one before it in the function
func.func @mixed(%p: !program.ptr, %n: i64) {
  program.multiply_matrices i8_i8 %p, %p[%n, 64, %n], %p pieces %n steps %n fetches 0 from %p rows 16 columns 16
  program.multiply_matrices i8_i8 %p, %p[%n, 32, %n], %p pieces %n steps %n fetches 0 from %p rows 16 columns 16 {words = 8 : i64}
  return
}
