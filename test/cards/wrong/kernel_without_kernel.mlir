// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// No function to run.
// CHECK: {{.*}}/kernel_without_kernel.mlir:7:5: error: the card has no 'func.func @kernel' of type (!program.ptr, i64, i64, !program.ptr) -> (), and the mechanism names no file of C either
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group : !transform.any_op
    transform.yield
  }
  func.func private @read_a(!program.ptr, i64, i64, i64) -> f32
  func.func @tasks(%g: !program.ptr) -> i64 {
    %one = arith.constant 1 : i64
    return %one : i64
  }
}
