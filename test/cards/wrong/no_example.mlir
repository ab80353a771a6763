// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// Nothing to try the card on.
// CHECK: {{.*}}/no_example.mlir: error: there is nothing to try the card on; write a 'func.func @example' into it, or the file '{{.*}}/Inputs/no_example.mlir'
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
