// RUN: heddle-opt %S/Inputs/elementwise.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// elementwise: each element of the results on its own.
//
// Matches   parallel loops with any ops in them (arithmetic, transposes, gathers, concatenations), and
//           reductions whose kept dimensions are walked in lanes.
// Produces  tasks of about `chunk` elements, the last dimension in lanes, neighbouring dimensions as one
//           where every operand allows it.
// Needs     nothing.
// Why       what only this group reads never reaches memory.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64,
    key = ["p*(*)", "p* { s+ { p+(max|min|sum|prod) } }"]}} {
  // CHECK: graph.group "gelu"
  // CHECK-SAME: schedule = {chunk = 4096 : i64, mechanism = "pointwise"}
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %chunk: !transform.param<i64> {transform.readonly,
        heddle.knob = [512, 1024, 2048, 4096, 8192, 16384, 32768], heddle.default = 4096 : i64}) {
    transform.heddle.pointwise %group chunk %chunk : !transform.any_op
    transform.yield
  }
}
