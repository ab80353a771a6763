// RUN: heddle-opt %S/Inputs/conv_narrow.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// conv_narrow: a convolution of few filters, with the reduction in lanes instead of the filters.
//
// Matches   a dot over channels and a window inside of parallel loops, with elementwise ops after it.
// Produces  tiles of m pixels of a row by all filters, an accumulator each, whose lanes are summed up at
//           the end; a copy with borders of a padded image.
// Needs     filters that are constant, pixels whose channels are neighbours, no groups, f32. The chooser
//           takes it for at most as many filters as a vector has lanes, where it pays.
// Why       with filters in lanes, 3 of them use 3 lanes of 16 (bench/notes/2026-11-21-kernels.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 12 : i64, dtypes = ["f32"],
    key = "p* { k:s { w+(dot) } }"}} {
  // CHECK: graph.group "conv"
  // CHECK-SAME: card = "conv_narrow"
  // CHECK-SAME: schedule = {m = 8 : i64, mechanism = "narrow"}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14], heddle.default = 8 : i64},
      %tiles: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1, 2, 4, 8, 16, 32], heddle.default = 0 : i64}) {
    transform.heddle.narrow %group m %m tiles %tiles : !transform.any_op
    transform.yield
  }
}
