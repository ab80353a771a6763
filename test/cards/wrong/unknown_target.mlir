// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A target that there is not.
// CHECK: {{.*}}/unknown_target.mlir:4:1: error: unknown target 'cup'; known: cpu, cuda
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cup", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
