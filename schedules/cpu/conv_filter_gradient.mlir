// RUN: heddle-opt %S/Inputs/conv_filter_gradient.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// conv_filter_gradient: the gradient of a convolution's filters as sums over positions, without im2col.
//
// Matches   the sum of products over images and positions inside of loops over filters.
// Produces  for each place of the window, tiles of m channels by n filters; positions in lines whose panel of
//           dy the L2 holds; `parts` of the positions, the sums of which are added at the end. Filters of one
//           channel each have channels in lanes.
// Needs     images channels last, f32, filters of known sizes. Images of any number and size.
// Why       windows laid out as columns are as many copies of the image as the window has places.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64, dtypes = ["f32"],
    key = "p* { s+(conv_filter_gradient) }"}} {
  // CHECK: graph.group "filters"
  // CHECK-SAME: card = "conv_filter_gradient"
  // CHECK-SAME: schedule = {chunks = 1 : i64, m = 8 : i64, mechanism = "filter_gradient", n = 32 : i64, panels = 1 : i64, parts = 4 : i64, strips = 1 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 3, 4, 5, 6, 8, 9, 12, 14, 16], heddle.default = 8 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [4, 8, 12, 16, 24, 32, 48, 64, 80, 96], heddle.default = 32 : i64},
      %parts: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 8, 16, 32], heddle.default = 4 : i64},
      %chunks: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 8, 16], heddle.default = 1 : i64},
      %strips: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1], heddle.default = 1 : i64},
      %panels: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1], heddle.default = 1 : i64},
      %turned: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1], heddle.default = 0 : i64}) {
    transform.heddle.filter_gradient %group m %m n %n parts %parts chunks %chunks strips %strips panels %panels turned %turned
      : !transform.any_op
    transform.yield
  }
}
