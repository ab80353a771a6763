// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// Two mechanisms, of which only the last would count.
// CHECK: {{.*}}/two_mechanisms.mlir:9:5: error: mechanism 'serial' follows 'contraction', but a card calls one; make a second card of it
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.heddle.serial %group : !transform.any_op
    transform.yield
  }
}
