// RUN: heddle-opt %S/Inputs/pool.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// pool: the largest or the mean of a window, channels in lanes.
//
// Matches   a maximum or sum over a window inside of parallel loops.
// Produces  for each row of the result, `pixels` of it at most at a time, the window unrolled, the borders
//           apart. Channels in blocks whose rows the L1 holds.
// Needs     one or two spatial dimensions, channels that are neighbours and a window of at most 64 places.
//           Else the group runs element by element.
// Why       no index is checked inside of the borders.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64, key = "p* { w+(max|sum) }"}} {
  // CHECK: graph.group "pool"
  // CHECK-SAME: schedule = {mechanism = "window", pixels = 8 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %pixels: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 6, 8], heddle.default = 8 : i64}) {
    transform.heddle.window %group pixels %pixels : !transform.any_op
    transform.yield
  }
}
