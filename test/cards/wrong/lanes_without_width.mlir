// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// Lanes of which nobody says how many.
// CHECK: {{.*}}/lanes_without_width.mlir:11:3: error: hole 'write_lanes' has no width: a hole that reads lanes says how many a vector has
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], nest = "m:p* { n:s(sum) n:p }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "rows" %group : !transform.any_op
    transform.yield
  }
  func.func private @read_0(!program.ptr, i64, i64) -> f32
  func.func private @write_lanes(!program.ptr, i64, i64, f32)
  func.func @tasks(%g: !program.ptr) -> i64 {
    %one = arith.constant 1 : i64
    return %one : i64
  }
  func.func @kernel(%g: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr) {
    return
  }
}
