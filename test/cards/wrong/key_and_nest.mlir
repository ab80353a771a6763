// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// Both ways to say what the card matches.
// CHECK: {{.*}}/key_and_nest.mlir:4:1: error: heddle.card has both 'key', which each deciding op of a group matches, and 'nest', which the whole group does; remove one
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }", nest = "m:p { n:p { k:s(dot) } }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
