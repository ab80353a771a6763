// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A kernel of a nest of which nothing says what the holes are.
// CHECK: {{.*}}/kernel_nest_without_example.mlir:7:5: error: a kernel of the frame 'nest' has the holes of its @example, but the card has none
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", nest = "p* { s(max) s(sum) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "nest" %group from "Inputs/wrong.c" : !transform.any_op
    transform.yield
  }
}
