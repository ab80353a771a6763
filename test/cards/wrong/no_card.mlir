// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A module that is no card.
// CHECK: {{.*}}/no_card.mlir:4:1: error: the module has no attribute 'heddle.card = {target = "cpu", priority = 10, key = "p* { k:s(dot) }"}'
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
