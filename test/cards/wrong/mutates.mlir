// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A transform op that rewrites the program, in a sequence inside of the schedule.
// CHECK: {{.*}}/mutates.mlir:10:7: error: 'transform.annotate' may rewrite the program; a card calls only transform.heddle.* mechanisms
// CHECK-NEXT: {{.*}}/mutates.mlir:8:5: error: 'transform.sequence' may rewrite the program; a card calls only transform.heddle.* mechanisms
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.sequence %group : !transform.any_op failures(propagate) {
    ^bb0(%inner: !transform.any_op):
      transform.annotate %inner "fast" : !transform.any_op
    }
    transform.heddle.serial %group : !transform.any_op
    transform.yield
  }
}
