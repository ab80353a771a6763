// RUN: heddle-opt %S/Inputs/small_matmul.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// small_matmul: products of small matrices, written in C, with what stands around them in its holes.
//
// Matches   a dot over one dimension inside of parallel loops, of f32, whose depth and columns are
//           known and small: heads of an attention, blocks of a convolution by transforms.
// Produces  small_matmul.c: m rows at a time meet the right operand where it lies.
// Needs     clang on the machine that compiles the model.
// Why       it shows a kernel in C: for such sizes packing the right operand costs as much as the
//           product does (bench/notes/2026-11-21-libraries.md).
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 15 : i64, dtypes = ["f32"],
    key = "p* { n:p { k:s(dot) } }", max = {n = 64, k = 64}}} {
  // CHECK: graph.group "small"
  // CHECK-SAME: card = "small_matmul"
  // CHECK-SAME: m = 8 : i64, mechanism = "kernel.product"
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 8], heddle.default = 8 : i64}) {
    transform.heddle.kernel "product" %group from "small_matmul.c" m %m : !transform.any_op
    transform.yield
  }
}
