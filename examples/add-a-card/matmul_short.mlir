// RUN: heddle-opt %S/Inputs/matmul_short.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// matmul_short: a product whose reduction is short, in tall tiles.
//
// Matches   a dot over at most 32 elements inside of parallel loops, in f32.
// Produces  tiles of m rows by n columns of the result.
// Needs     nothing of the sizes: tails are masked or clamped.
// Why       an example: with few steps a tile, storing it dominates, and one vector a row stores rows
//           one after the other.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 20 : i64, parts = false, dtypes = ["f32"],
    key = "p* { k:s(dot) }", max = {k = 32}}} {
  // CHECK: graph.group "short"
  // CHECK-SAME: card = "matmul_short"
  // CHECK-SAME: schedule = {m = 12 : i64, mechanism = "contraction", n = 16 : i64}
  // CHECK: graph.group "long"
  // CHECK-NOT: schedule
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [8, 12, 14], heddle.default = 12 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [8, 16], heddle.default = 16 : i64}) {
    transform.heddle.contract %group m %m n %n : !transform.any_op
    transform.yield
  }
}
