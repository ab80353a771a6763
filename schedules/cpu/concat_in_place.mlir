// RUN: heddle-opt %S/Inputs/concat_in_place.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// concat_in_place: a concatenation whose operands are written where they belong.
//
// Matches   element by element, ending with a concat.
// Produces  no kernel where the kernels of all operands can store into its result; what they cannot, what
//           others read too, or what is computed on the way, is stored in tasks of about `chunk` elements.
// Needs     an operand at least that a kernel stores element by element (not attention, a library's function,
//           a scatter), and that only the concat reads; sizes that are known when a run begins.
// Why       the operands are not read and written once more.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 12 : i64, key = "p*(*)"}} {
  // CHECK: graph.group "sum"
  // CHECK: graph.group "joined"
  // CHECK-SAME: schedule = {chunk = 4096 : i64, mechanism = "place"}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %chunk: !transform.param<i64> {transform.readonly,
        heddle.knob = [512, 1024, 2048, 4096, 8192, 16384, 32768], heddle.default = 4096 : i64}) {
    transform.heddle.place %group chunk %chunk : !transform.any_op
    transform.yield
  }
}
