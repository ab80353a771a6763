// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A knob that does not say which values are correct.
// CHECK: {{.*}}/knob_without_domain.mlir:7:7: error: knob 'm' must be written '%m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}'
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
