// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A function that no library has.
// CHECK: {{.*}}/call_unknown_function.mlir:7:5: error: 'transform.heddle.call' op knows no function 'onednn.softmax'; known: onednn.matmul, onednn.convolution, onednn.layer_norm
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.call "onednn.softmax" %group : !transform.any_op
    transform.yield
  }
}
