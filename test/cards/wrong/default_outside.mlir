// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A default that the knob does not allow.
// CHECK: {{.*}}/default_outside.mlir:7:7: error: the default of knob 'm' is 7, but 'heddle.knob' allows only [4, 8]
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 7 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
