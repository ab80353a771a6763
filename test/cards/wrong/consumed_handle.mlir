// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A handle that is used after the op that consumed it.
// CHECK: {{.*}}/consumed_handle.mlir:8:14: error: 'transform.apply_registered_pass' may rewrite the program; a card calls only transform.heddle.* mechanisms
// CHECK-NEXT: {{.*}}/consumed_handle.mlir:10:5: error: operand #0 may be used after free
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.consumed}) {
    %again = transform.apply_registered_pass "cse" to %group
      : (!transform.any_op) -> !transform.any_op
    transform.heddle.serial %group : !transform.any_op
    transform.yield
  }
}
