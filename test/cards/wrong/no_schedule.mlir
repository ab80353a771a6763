// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A card that says not what to do.
// CHECK: {{.*}}/no_schedule.mlir:4:1: error: the module has no 'transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}, ...)' with a body
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
}
