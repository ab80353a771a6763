// RUN: heddle-opt %S/../cpu/Inputs/matmul.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// cuda_product: a product or convolution by blocks of threads, a tile of the result each.
//
// Matches   a dot over one dimension, or over channels and a window, inside of parallel loops, with
//           elementwise ops after it.
// Produces  blocks that have tiles of m rows by n columns; 0: of the size that leaves no processor idle.
// Needs     a tile that there is: 16 x 64, 64 x 16, 32 x 32, 64 x 64 and 128 x 128 of numbers; of f16 and
//           bf16 those of compiler/lower/threads/Fragments.cpp.
// Why       a tile's operands are read once into memory that its threads share.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cuda", priority = 10 : i64, key = ["p* { k:s(dot) }", "p* { k:s { w+(dot) } }"]}} {
  // CHECK: graph.group "dense"
  // CHECK-SAME: card = "cuda_product"
  // CHECK-SAME: schedule = {mechanism = "contraction"}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 16, 32, 64, 128], heddle.default = 0 : i64},
      %n: !transform.param<i64> {transform.readonly,
        heddle.knob = [0, 16, 32, 64, 128], heddle.default = 0 : i64}) {
    transform.heddle.contract %group m %m n %n : !transform.any_op
    transform.yield
  }
}
