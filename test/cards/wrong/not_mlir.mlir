// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// What is no MLIR is refused where it stops being MLIR.
// CHECK: {{.*}}/not_mlir.mlir:4:1: error: custom op 'target' is unknown (tried 'builtin.target' as well)
target: cpu
key: p* { k:s(dot) }
