// RUN: heddle-opt %S/Inputs/matmul_rows.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// matmul_rows: a product in register tiles and, while its rows are in the cache, reductions over them.
//
// Matches   a dot over one dimension or a convolution, and one or more reductions over the columns of its
//           result, with elementwise ops around: normalisation after a projection, GEMM + softmax.
// Produces  tiles of m rows; a worker takes `rows` of them at a time through all columns, then through
//           the reductions.
// Needs     the rows of one tile to fit the L2 beside the panels; the number of columns is constant.
// Why       the product's result is not written to memory and read again, and a launch less.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64, dtypes = ["f32", "f64", "i32", "i8", "ui8", "i16"],
    key = ["p* { k:s(dot) }", "p* { k:s { w+(dot) } }", "p* { s(max|min|sum|prod) }"]}} {
  // CHECK: graph.group "projection"
  // CHECK-SAME: schedule = {m = 8 : i64, mechanism = "stitch", n = 48 : i64}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 3, 4, 5, 6, 8, 12, 14, 16, 32], heddle.default = 8 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [4, 8, 12, 16, 24, 32, 48, 64, 80, 112], heddle.default = 48 : i64},
      %panels: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 1, 2, 4, 8, 16, 32], heddle.default = 0 : i64},
      %rows: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 8, 16, 32, 64, 128, 256], heddle.default = 0 : i64}) {
    // 0 panels, 0 rows: as many as the L2 holds.
    transform.heddle.stitch %group m %m n %n panels %panels rows %rows : !transform.any_op
    transform.yield
  }
}
