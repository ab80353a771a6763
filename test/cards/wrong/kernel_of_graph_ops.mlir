// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A kernel that is no loop.
// CHECK: {{.*}}/kernel_of_graph_ops.mlir:16:10: error: 'graph.constant' has no place in a kernel, which is written in arith, cf, func, math, memref, program, scf and vector
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
  func.func @kernel(%g: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr) {
    %c = graph.constant dense<0.0> : tensor<f32>
    return
  }
}
