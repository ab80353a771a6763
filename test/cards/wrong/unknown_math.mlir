// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// Neither of the two ways to compute sums.
// CHECK: {{.*}}/unknown_math.mlir:4:1: error: 'math' of heddle.card is 'loose'; known: strict, fast
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", math = "loose", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.contract %group : !transform.any_op
    transform.yield
  }
}
