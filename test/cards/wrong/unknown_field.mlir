// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A field that is misspelt.
// CHECK: {{.*}}/unknown_field.mlir:4:1: error: heddle.card has no field 'priorty'; did you mean 'priority'? fields: target, priority, key, nest, moves, parts, dtypes, min, max, prologue, epilogue, math
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priorty = 20 : i64, key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
