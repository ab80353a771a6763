// RUN: heddle-opt %S/Inputs/attention_gradient.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// attention_gradient: the gradient of an attention; neither scores nor their gradients reach memory.
//
// Matches   products that make scores of one shape, what is computed of these row by row (the softmax
//           once more, and its gradient), and products that take the result: the gradients of
//           queries, keys and values; any batch dimensions.
// Produces  one task per head. It takes `rows` query rows at a time, whose scores and their gradients stay
//           in the worker's scratch from the products before to those after; sums over queries wait
//           there too.
// Needs     nothing of the sizes: tails are masked or clamped. Scratch for three packed operands and
//           two sums of one head, and for the scores of `rows` rows.
// Why       what is stored otherwise grows with the square of the length: the softmax, and two more
//           tensors of its size while the gradient runs (bench/notes/2026-11-25-attention-gradient.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64, dtypes = ["f32", "f64", "f16", "bf16"],
    key = ["p* { k:s(dot) }", "p* { s(max|min|sum|prod) }"]}} {
  // CHECK: graph.group "attention"
  // CHECK-SAME: card = "attention_gradient"
  // CHECK-SAME: schedule = {m = 6 : i64, mechanism = "attention_gradient", n = 64 : i64
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 3, 4, 5, 6, 8, 12], heddle.default = 6 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [4, 8, 16, 32, 48, 64], heddle.default = 64 : i64},
      %rows: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 6, 12, 24, 48, 96], heddle.default = 0 : i64}) {
    // 0 rows: as many as a quarter of the L2 holds.
    transform.heddle.attention_gradient %group m %m n %n rows %rows : !transform.any_op
    transform.yield
  }
}
