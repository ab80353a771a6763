// RUN: heddle-opt %S/Inputs/matmul.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// matmul: a product in register tiles, what follows it in the registers.
//
// Matches   a dot over one dimension inside of parallel loops, with elementwise ops after it.
// Produces  tiles of m rows by n columns of the result; the right operand in panels of n columns.
// Needs     nothing of the sizes: tails are masked or clamped. m * n / lanes + n / lanes + 1 vector
//           registers, else values spill.
// Why       the accumulators stay in registers for the whole reduction, and a constant right operand
//           is packed once, when compiling (bench/notes/2026-11-21-register-tiles.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64, dtypes = ["f32", "f64", "i32", "i8", "ui8", "i16"],
    key = "p* { k:s(dot) }"}} {
  // CHECK: graph.group "dense"
  // CHECK-SAME: card = "matmul"
  // CHECK-SAME: schedule = {m = 8 : i64, mechanism = "contraction", n = 48 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 3, 4, 5, 6, 8, 12, 14, 16, 32], heddle.default = 8 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [4, 8, 12, 16, 24, 32, 48, 64, 80, 112], heddle.default = 48 : i64},
      %panels: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1, 2, 4, 8, 16, 32], heddle.default = 0 : i64},
      %tiles: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1, 2, 4, 8, 16, 32], heddle.default = 0 : i64}) {
    // 0 panels: as many as the L2 holds; 0 tiles: as many as make a task worth its start.
    transform.heddle.contract %group m %m n %n panels %panels tiles %tiles : !transform.any_op
    transform.yield
  }
}
