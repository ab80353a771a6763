// RUN: heddle-opt %S/Inputs/t5_layer_norm.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// t5_layer_norm_cuda: t5_layer_norm on a GPU.
//
// Matches   what t5_layer_norm matches.
// Produces  one task for each row, whose `threads` take neighbouring elements; two passes over the row.
// Needs     nothing of the sizes.
// Why       it shows a card for a device: its target and the knobs that the mechanism has there.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cuda", priority = 20 : i64, nest = "m:p* { n:s(sum) n:p }"}} {
  // CHECK: graph.group "norm"
  // CHECK-SAME: card = "t5_layer_norm_cuda"
  // CHECK-SAME: schedule = {mechanism = "rows", threads = 128 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %threads: !transform.param<i64> {transform.readonly,
        heddle.knob = [32, 64, 128, 256], heddle.default = 128 : i64}) {
    transform.heddle.rows %group threads %threads : !transform.any_op
    transform.yield
  }
}
