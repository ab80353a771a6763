// C has the memory of its host alone.
// RUN: not heddle-opt %s --heddle-print-c 2>&1 | FileCheck %s

// CHECK: error: error: target 'c' has the host's memory alone, but the program is of memory 'near'
func.func @kernel(%args: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr<"near">) {
  return
}
