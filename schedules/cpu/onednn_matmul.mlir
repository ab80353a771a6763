// RUN: heddle-opt %S/Inputs/onednn_matmul.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// onednn_matmul: a product as oneDNN computes it.
//
// Matches   a dot over one dimension inside of parallel loops, of f32, with elementwise ops after
//           it.
// Produces  one call of oneDNN's matmul: sums, products and differences with what is repeated into
//           the result, and gelu, are done by it before it stores; other ops after them, such as a
//           relu, whose NaNs oneDNN loses, follow element by element.
// Needs     oneDNN 2 on the machine that runs the artefact, where a session opens it. Its priority is
//           below 0: only a plan or a search takes it.
// Why       generated code has to earn its place beside a library written by hand
//           (bench/notes/2026-11-21-libraries.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = -10 : i64, dtypes = ["f32"],
    key = "p* { k:s(dot) }"}} {
  // CHECK: graph.group "dense"
  // CHECK-SAME: card = "onednn_matmul"
  // CHECK-SAME: schedule = {mechanism = "onednn.matmul"}
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.call "onednn.matmul" %group : !transform.any_op
    transform.yield
  }
}
