// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines
// A knob that does not say which values are correct.
// CHECK: TODO
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly}) {
    transform.loop.contract %group m %m : !transform.any_op
    transform.yield
  }
}
