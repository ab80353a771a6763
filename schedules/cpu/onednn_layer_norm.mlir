// RUN: heddle-opt %S/Inputs/onednn_layer_norm.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// onednn_layer_norm: a normalisation of rows as oneDNN computes it.
//
// Matches   (x - mean) / sqrt(variance + epsilon) over trailing dimensions of f32, however it is
//           written, with or without scale and shift.
// Produces  one call of oneDNN's layer normalisation; elementwise ops after it follow in a phase of
//           their own.
// Needs     rows of a length that is known. oneDNN 2 on the machine that runs the artefact. Its
//           priority is below 0: only a plan or a search takes it.
// Why       generated code has to earn its place beside a library written by hand
//           (bench/notes/2026-11-21-libraries.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = -10 : i64, dtypes = ["f32"],
    key = "p* { s+(sum) }"}} {
  // CHECK: graph.group "norm"
  // CHECK-SAME: card = "onednn_layer_norm"
  // CHECK-SAME: schedule = {mechanism = "onednn.layer_norm"}
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.call "onednn.layer_norm" %group : !transform.any_op
    transform.yield
  }
}
