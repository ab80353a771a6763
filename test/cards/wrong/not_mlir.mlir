// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines
// What is no MLIR is refused where it stops being MLIR.
// CHECK: TODO
target: cpu
key: p* { k:s(dot) }
