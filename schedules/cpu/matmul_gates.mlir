// RUN: heddle-opt %S/Inputs/matmul_gates.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// matmul_gates: a product whose columns are read in parts, and what is computed of these.
//
// Matches   a dot over one dimension, slices of its last dimension in up to 4 equal parts, and elementwise
//           ops after them: the cell of an LSTM, a gated linear unit.
// Produces  tiles of m rows by n columns; the right operand in panels that hold columns of each part side
//           by side, so that the parts of an element meet in the registers.
// Needs     nothing of the sizes: tails are masked or clamped. `kind`, since the loops that decide are those
//           of `matmul` and `conv`, which are for such groups too: that slices take parts is no loop.
// Why       no part is written to memory and read again, and a launch or two less: one kernel a step.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 11 : i64, parts = true, dtypes = ["f32", "f64", "i32", "i8", "ui8", "i16"],
    key = ["p* { k:s(dot) }", "p* { k:s { w+(dot) } }"]}} {
  // CHECK: graph.group "cell"
  // CHECK-SAME: schedule = {m = 6 : i64, mechanism = "contraction", n = 64 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 6, 8], heddle.default = 6 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [8, 12, 16, 24, 32, 48, 64], heddle.default = 64 : i64},
      %panels: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1, 2, 4, 8, 16, 32], heddle.default = 0 : i64},
      %tiles: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1, 2, 4, 8, 16, 32], heddle.default = 0 : i64}) {
    // 0 panels: as many as the L2 holds; 0 tiles: as many as make a task worth its start.
    transform.heddle.contract %group m %m n %n panels %panels tiles %tiles : !transform.any_op
    transform.yield
  }
}
