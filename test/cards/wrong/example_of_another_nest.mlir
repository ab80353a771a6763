// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// An example that the card's own nest does not match.
// CHECK: {{.*}}/example_of_another_nest.mlir: error: the card is not for its own @example: loops 'm:p { n:p { k:s(dot) } }' are not 'm:p { n:s(sum) n:p }': loop 'p' is no 'n:s(sum)'
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", nest = "m:p { n:s(sum) n:p }"}} {
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
