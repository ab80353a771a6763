// A function that is only declared cannot be written: C text is compiled alone.
// RUN: not heddle-opt %s --heddle-print-c 2>&1 | FileCheck %s

// CHECK: error: internal error: function 'kernel' has no body, and C text is compiled alone
func.func private @kernel(!program.ptr, i64, i64, !program.ptr)
func.func @run(%run: !program.ptr, %n: i64) {
  program.launch @kernel(%run, %run, %n, %n)
  return
}
