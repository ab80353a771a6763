// RUN: heddle-opt %S/Inputs/conv_depthwise.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// conv_depthwise: a window over each channel on its own, channels in lanes.
//
// Matches   a dot over a window, and no loop over channels, with elementwise ops after it.
// Produces  for each row of the result, `pixels` of it at most at a time: the window unrolled, a small
//           filter in registers, the borders apart. Channels in blocks whose rows the L1 holds.
// Needs     one or two spatial dimensions and a window of at most 64 places. Else the group runs element by element.
// Why       a depthwise convolution does few operations a byte: each loaded pixel serves several
//           results.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64, key = "p* { w+(dot) }"}} {
  // CHECK: graph.group "depthwise"
  // CHECK-SAME: schedule = {mechanism = "window", pixels = 8 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %pixels: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 6, 8], heddle.default = 8 : i64}) {
    transform.heddle.window %group pixels %pixels : !transform.any_op
    transform.yield
  }
}
