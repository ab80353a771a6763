// A CPU has the memory of its host alone.
// RUN: not heddle-opt %s --heddle-lower-program 2>&1 | FileCheck %s

// CHECK: error: target 'x86-64-v3' has the host's memory alone, but 'kernel' is of memory 'near'
func.func @kernel(%args: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr<"near">) {
  return
}
