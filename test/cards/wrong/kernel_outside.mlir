// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A source that is elsewhere.
// CHECK: {{.*}}/kernel_outside.mlir:7:5: error: '../../secret.c' must be beside the card or below it
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group from "../../secret.c" : !transform.any_op
    transform.yield
  }
}
