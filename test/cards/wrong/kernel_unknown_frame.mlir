// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A kernel of what has no holes.
// CHECK: {{.*}}/kernel_unknown_frame.mlir:7:5: error: 'transform.heddle.kernel' op knows no kernels of 'window'; known: product, rows, nest
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "window" %group from "Inputs/wrong.c" : !transform.any_op
    transform.yield
  }
}
