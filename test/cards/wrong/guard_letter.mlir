// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A guard on a loop that the key does not name.
// CHECK: {{.*}}/guard_letter.mlir:4:1: error: 'max' of heddle.card: 'n' is the letter of no loop of the key
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }", max = {n = 64}}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
