// RUN: heddle-opt %S/../cpu/Inputs/matmul_rows.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// cuda_product_rows: a product, then the reductions over its rows, as two kernels of one group.
//
// Matches   a dot over one dimension, and reductions over the rows of the result: a projection with its
//           normalisation.
// Produces  the knobs of cuda_product, then those of cuda_rows.
// Needs     nothing of the sizes.
// Why       a block rarely has all columns of a row; what lies between stays in the cache of the device.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cuda", priority = 12 : i64,
    key = ["p* { k:s(dot) }", "p* { k:s { w+(dot) } }", "p* { s(max|min|sum|prod) }"]}} {
  // CHECK: card = "cuda_product_rows"
  // CHECK-SAME: schedule = {mechanism = "stitch"}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 16, 32, 64, 128], heddle.default = 0 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 16, 32, 64, 128], heddle.default = 0 : i64},
      %threads: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1, 32, 64, 128, 256, 512, 1024], heddle.default = 0 : i64}) {
    transform.heddle.stitch %group m %m n %n threads %threads : !transform.any_op
    transform.yield
  }
}
