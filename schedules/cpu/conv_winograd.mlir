// RUN: heddle-opt %S/Inputs/conv_winograd.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// conv_winograd: a 3x3 convolution of stride 1 as products of transformed tiles of its images.
//
// Matches   a dot over channels and a window of 3x3 inside of parallel loops, with elementwise ops after it.
// Produces  tiles of 2x2 or 4x4 pixels: their 4x4 or 6x6 inputs are transformed into the worker's scratch,
//           multiplied there with transformed filters, transformed back and stored. 4 or 2.25 multiplications
//           a pixel instead of 9. Filters that are transformed when the model is compiled take 1.8 or 4 times
//           the memory; with `late` each task transforms those that it needs.
// Needs     filters that are constant, pixels whose channels are neighbours, no strides or groups, dilations
//           of at most 1024, f32. Sums are rounded otherwise than those of products (`math = "fast"`): tiles of 4x4
//           have up to 2.5 times the error of a plain sum. An infinity or NaN makes its whole tile NaN.
// Why       it is what makes 3x3 convolutions faster than their multiplications would allow
//           (bench/notes/2026-11-21-winograd.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 15 : i64, dtypes = ["f32"], math = "fast",
    key = "p* { k:s { h:w { v:w(dot) } } }", min = {h = 3, v = 3}, max = {h = 3, v = 3}}} {
  // CHECK: graph.group "conv"
  // CHECK-SAME: card = "conv_winograd"
  // CHECK-SAME: schedule = {m = 8 : i64, mechanism = "winograd", n = 48 : i64, tile = 4 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %tile: !transform.param<i64> {transform.readonly, heddle.knob = [2, 4], heddle.default = 4 : i64},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 3, 4, 5, 6, 8, 12, 14], heddle.default = 8 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [4, 8, 12, 16, 24, 32, 48, 64, 80, 112], heddle.default = 48 : i64},
      %tiles: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 8, 16, 24, 32, 48, 64, 96, 128], heddle.default = 0 : i64},
      %late: !transform.param<i64> {transform.readonly, heddle.knob = [0, 1], heddle.default = 0 : i64}) {
    transform.heddle.winograd %group tile %tile m %m n %n tiles %tiles late %late : !transform.any_op
    transform.yield
  }
}
