// RUN: heddle-opt %S/Inputs/conv.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// conv: a channels-last convolution as a product whose left rows are pieces of the image.
//
// Matches   a dot over channels and a window inside of parallel loops, with elementwise ops after it.
// Produces  tiles of m pixels of a row by n output channels; no im2col, but a copy with borders of a
//           padded image.
// Needs     filters that are constant, pixels whose channels are neighbours. Else the group runs
//           element by element.
// Why       a row of the window is one contiguous run of the image, so the inner loop is that of a
//           product (bench/notes/2026-11-21-register-tiles.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64, dtypes = ["f32", "f64", "i32", "i8", "ui8", "i16"],
    key = "p* { k:s { w+(dot) } }"}} {
  // CHECK: graph.group "conv"
  // CHECK-SAME: card = "conv"
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
    transform.heddle.contract %group m %m n %n panels %panels tiles %tiles : !transform.any_op
    transform.yield
  }
}
