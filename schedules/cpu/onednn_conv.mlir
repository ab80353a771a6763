// RUN: heddle-opt %S/Inputs/onednn_conv.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// onednn_conv: a channels-last convolution as oneDNN computes it, direct.
//
// Matches   a dot over channels and a window inside of parallel loops, or over a window alone (one
//           channel a group), of f32, with elementwise ops after it.
// Produces  one call of oneDNN's convolution: sums and products with what is repeated into the
//           result, and gelu, are done by it before it stores; other ops follow element by element.
// Needs     filters that are constant: a session brings them into oneDNN's layout once. oneDNN 2 on
//           the machine that runs the artefact. Its priority is below 0: only a plan or a search
//           takes it.
// Why       generated code has to earn its place beside a library written by hand
//           (bench/notes/2026-11-21-libraries.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = -10 : i64, dtypes = ["f32"],
    key = ["p* { k:s { w+(dot) } }", "p* { w+(dot) }"]}} {
  // CHECK: graph.group "conv"
  // CHECK-SAME: card = "onednn_conv"
  // CHECK-SAME: schedule = {mechanism = "onednn.convolution"}
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.call "onednn.convolution" %group : !transform.any_op
    transform.yield
  }
}
