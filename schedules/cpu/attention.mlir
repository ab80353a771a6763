// RUN: heddle-opt %S/Inputs/attention.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// attention: two products with a softmax between them; the scores never reach memory.
//
// Matches   a product whose elements go through scale, cap or mask into a softmax over the last
//           dimension, and a second product of that; any batch dimensions.
// Produces  one task per head, or `rows` query rows of it. Keys and values of the head are packed into
//           the worker's scratch; m query rows at a time meet all keys, in panels of n columns, but
//           for panels that a mask hides from all of them. With factors of bf16, 16 or 32 rows and columns
//           are multiplied in registers that hold matrices, where the machine has some.
// Needs     nothing of the sizes: tails are masked or clamped. m * n / lanes + n / lanes + 1 vector
//           registers, else values spill. Scratch for the keys and values of one head.
// Why       a strip of m rows of scores stays in the L1, the keys and values of a head in the L2
//           (bench/notes/2026-11-21-attention.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64, dtypes = ["f32", "f64", "f16", "bf16"], moves = true,
    nest = ["p* { n:s(max) { s(dot) } n:s(sum) p* { s(dot) } }",
            // the sum after the second product, and batches that are seen in two shapes
            "p* { n:s(max) { s(dot) } p* { s(dot) } n:s(sum) }",
            "p* { p* { s(dot) } p* { n:s(max) n:s(sum) } p* { s(dot) } }"]}} {
  // CHECK: graph.group "attention"
  // CHECK-SAME: card = "attention"
  // CHECK-SAME: schedule = {m = 6 : i64, mechanism = "attention", n = 64 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 3, 4, 5, 6, 8, 12, 16, 32], heddle.default = 6 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [4, 8, 16, 32, 48, 64], heddle.default = 64 : i64},
      %rows: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 8, 16, 32, 64, 128, 256], heddle.default = 0 : i64}) {
    // 0 rows: all of a head where there are heads enough for the workers.
    transform.heddle.attention %group m %m n %n rows %rows : !transform.any_op
    transform.yield
  }
}
