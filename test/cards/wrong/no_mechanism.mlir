// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines
// A schedule that calls nothing.
// CHECK: TODO
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    %c = transform.param.constant 4 : i64 -> !transform.param<i64>
    transform.yield
  }
}
