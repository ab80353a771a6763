// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines
// A handle that is used behind the op that consumed it.
// CHECK: TODO
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.consumed}) {
    %again = transform.apply_registered_pass "cse" to %group
      : (!transform.any_op) -> !transform.any_op
    transform.loop.serial %group : !transform.any_op
    transform.yield
  }
}
