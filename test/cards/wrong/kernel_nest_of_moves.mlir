// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// The frame shows loops over whole tensors: there is no hole for a part of one.
// CHECK: {{.*}}/kernel_nest_of_moves.mlir:10:3: error: the frame 'nest' has no holes for @example: slice '{{.*}}' is no reduction, no product, and not computed element by element
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", nest = "p* { s(sum) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "nest" %group from "Inputs/wrong.c" : !transform.any_op
    transform.yield
  }
  func.func @example(%x: tensor<4x8xf32>) -> tensor<4xf32> {
    %part = graph.slice %x {starts = #graph.dims<0, 2>, steps = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x6xf32>
    %y = graph.reduce_sum %part {axes = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
