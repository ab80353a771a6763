// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A key whose op is not closed.
// CHECK: {{.*}}/unreadable_key.mlir:4:1: error: key 'p* { k:s(dot }', at column 14: ')' is missing; a loop is written 'k:s(dot)', see docs/spec/cards.md
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
