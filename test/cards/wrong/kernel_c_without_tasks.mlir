// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// C without the functions that are called.
// CHECK: {{.*}}/Inputs/no_tasks.c: error: it does not define 'heddle_tasks' (docs/spec/cards.md)
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group from "Inputs/no_tasks.c" : !transform.any_op
    transform.yield
  }
  func.func @example(%x: tensor<?x8xf32, #graph.dims<"n", 8>>, %w: tensor<8x4xf32> {heddle.constant})
      -> tensor<?x4xf32, #graph.dims<"n", 4>> {
    %y = graph.matmul %x, %w : (tensor<?x8xf32, #graph.dims<"n", 8>>, tensor<8x4xf32>) -> tensor<?x4xf32, #graph.dims<"n", 4>>
    return %y : tensor<?x4xf32, #graph.dims<"n", 4>>
  }
}
