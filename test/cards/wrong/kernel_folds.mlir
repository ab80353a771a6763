// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// Holes of two reductions, for a group of one.
// CHECK: {{.*}}/kernel_folds.mlir: error: the card is not for its own @example: its kernel has holes for 2 reductions, but the group has 1
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], nest = "m:p* { n:s(sum) n:p }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "rows" %group from "Inputs/two_folds.c" : !transform.any_op
    transform.yield
  }
  func.func @example(%x: tensor<?x8xf32, #graph.dims<"n", 8>>) -> tensor<?x8xf32, #graph.dims<"n", 8>> {
    %s = graph.reduce_sum %x {axes = array<i64: 1>, keep_dims = true} : (tensor<?x8xf32, #graph.dims<"n", 8>>) -> tensor<?x1xf32, #graph.dims<"n", 1>>
    %b = graph.broadcast %s : (tensor<?x1xf32, #graph.dims<"n", 1>>) -> tensor<?x8xf32, #graph.dims<"n", 8>>
    %y = graph.div %x, %b : tensor<?x8xf32, #graph.dims<"n", 8>>
    return %y : tensor<?x8xf32, #graph.dims<"n", 8>>
  }
}
