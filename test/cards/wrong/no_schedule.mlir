// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines
// A card that says not what to do.
// CHECK: TODO
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
}
