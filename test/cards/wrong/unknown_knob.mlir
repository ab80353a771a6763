// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A knob that the mechanism does not have.
// CHECK: {{.*}}/unknown_knob.mlir:8:5: error: 'transform.heddle.contract' op has no knob 'rows'; its knobs: m, n, panels, tiles
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group rows %m : !transform.any_op
    transform.yield
  }
}
