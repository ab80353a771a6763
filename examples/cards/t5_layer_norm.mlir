// RUN: heddle-opt %S/Inputs/t5_layer_norm.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// t5_layer_norm: a row divided by its root mean square, as T5 and Llama normalise.
//
// Matches   one sum over the last dimension, then a pass over the same dimension; elementwise ops
//           anywhere. The square, the mean, epsilon and the weights are such ops.
// Produces  one task for each `rows` rows; two passes over a row while it is in the cache.
// Needs     nothing of the sizes: a row's tail is masked.
// Why       it shows how little a card of one's own takes: no part of the compiler is built anew.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 20 : i64, nest = "m:p* { n:s(sum) n:p }"}} {
  // CHECK: graph.group "norm"
  // CHECK-SAME: card = "t5_layer_norm"
  // CHECK-SAME: schedule = {mechanism = "rows", rows = 4 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %rows: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 8, 16, 32], heddle.default = 4 : i64}) {
    transform.heddle.rows %group rows %rows : !transform.any_op
    transform.yield
  }
}
