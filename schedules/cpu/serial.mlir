// RUN: heddle-opt %S/Inputs/serial.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// serial: elements that depend on each other in order.
//
// Matches   scatters, whose updates may meet in one place.
// Produces  a part of the result for each worker, which walks all updates in order and takes those
//           of its part: some columns of rows that are long, some rows of others.
// Needs     nothing.
// Why       the order is part of the result, and an update costs more than a look at its place.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 10 : i64,
    key = "s*(scatter_elements|scatter_nd)"}} {
  // CHECK: graph.group "scatter"
  // CHECK-SAME: schedule = {mechanism = "serial"}
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.serial %group : !transform.any_op
    transform.yield
  }
}
