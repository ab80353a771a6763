// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// Rows are reductions: the mechanism cannot carry out a product.
// CHECK: {{.*}}/mechanism_cannot.mlir: error: the card is not for its own @example: mechanism 'rows' cannot carry it out: matmul '{{.*}}/mechanism_cannot.mlir:12' is neither a reduction nor computed element by element
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", nest = "m:p { n:p { k:s(dot) } }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.rows %group : !transform.any_op
    transform.yield
  }
  func.func @example(%x: tensor<?x8xf32, #graph.dims<"n", 8>>, %w: tensor<8x4xf32> {heddle.constant})
      -> tensor<?x4xf32, #graph.dims<"n", 4>> {
    %y = graph.matmul %x, %w : (tensor<?x8xf32, #graph.dims<"n", 8>>, tensor<8x4xf32>) -> tensor<?x4xf32, #graph.dims<"n", 4>>
    return %y : tensor<?x4xf32, #graph.dims<"n", 4>>
  }
}
