// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A hole with an index too few.
// CHECK: {{.*}}/hole_of_fewer_indices.mlir:10:3: error: hole 'read_a' must have type (!program.ptr, i64, i64, i64) -> f32, not (!program.ptr, i64, i64) -> f32
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group : !transform.any_op
    transform.yield
  }
  func.func private @read_a(!program.ptr, i64, i64) -> f32
  func.func @tasks(%g: !program.ptr) -> i64 {
    %one = arith.constant 1 : i64
    return %one : i64
  }
  func.func @kernel(%g: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr) {
    return
  }
}
