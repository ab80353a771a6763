// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A schedule that calls nothing.
// CHECK: {{.*}}/no_mechanism.mlir:6:3: error: @schedule calls no mechanism such as 'transform.heddle.rows %group : !transform.any_op'; see docs/spec/cards.md
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    %c = transform.param.constant 4 : i64 -> !transform.param<i64>
    transform.yield
  }
}
