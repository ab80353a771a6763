// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A hole that is misspelt.
// CHECK: {{.*}}/unknown_hole.mlir:10:3: error: 'kernel.product' has no hole 'raed_a'; did you mean 'read_a'? holes: batches, rows, columns, depth, read_a, read_b, write, knob_NAME, and read_ and write with _lanes or _part
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group : !transform.any_op
    transform.yield
  }
  func.func private @raed_a(!program.ptr, i64, i64, i64) -> f32
  func.func @tasks(%g: !program.ptr) -> i64 {
    %one = arith.constant 1 : i64
    return %one : i64
  }
  func.func @kernel(%g: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr) {
    return
  }
}
