// RUN: heddle-opt %S/Inputs/reduce_rows.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// reduce_rows: reductions over the trailing dimensions, all that a group does with a row while it is in
// the cache.
//
// Matches   one or more reductions over the same trailing dimensions, with elementwise ops around them:
//           softmax, normalisations, means.
// Produces  one task for each `rows` rows; in it one pass over the row for each reduction, then one that
//           stores.
// Needs     nothing of the sizes: a row's tail is masked.
// Why       the row is read from memory once, however many reductions there are.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64, key = "p* { s+(max|min|sum|prod) }"}} {
  // CHECK: graph.group "softmax"
  // CHECK-SAME: schedule = {mechanism = "rows", rows = 1 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %rows: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 8, 16, 32], heddle.default = 1 : i64}) {
    transform.heddle.rows %group rows %rows : !transform.any_op
    transform.yield
  }
}
