// RUN: heddle-opt %S/../cpu/Inputs/reduce_rows.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// cuda_rows: reductions over the trailing dimensions by threads that share a row.
//
// Matches   one or more reductions over the same trailing dimensions, with elementwise ops around them:
//           softmax, normalisations, means.
// Produces  one task for each row, of as many `threads`; 0: one for a few elements, a warp, or a block
//           where rows are few and long. A pass over the row for each reduction, then one that stores.
// Needs     nothing of the sizes.
// Why       neighbouring threads read neighbouring elements, and what they found is combined by shuffles.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cuda", priority = 10 : i64, key = "p* { s+(max|min|sum|prod) }"}} {
  // CHECK: graph.group "softmax"
  // CHECK-SAME: schedule = {mechanism = "rows"}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %threads: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1, 32, 64, 128, 256, 512, 1024], heddle.default = 0 : i64}) {
    transform.heddle.rows %group threads %threads : !transform.any_op
    transform.yield
  }
}
