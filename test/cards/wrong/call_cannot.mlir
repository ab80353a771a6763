// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// oneDNN has no convolution here, but a product.
// CHECK: {{.*}}/call_cannot.mlir: error: the card is not for its own @example: mechanism 'onednn.layer_norm' cannot carry it out: it is no (x - mean) / sqrt(variance + epsilon) over trailing dimensions
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], nest = "m:p { n:p { k:s(dot) } }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.call "onednn.layer_norm" %group : !transform.any_op
    transform.yield
  }
  func.func @example(%x: tensor<?x8xf32, #graph.dims<"n", 8>>, %w: tensor<8x4xf32> {heddle.constant})
      -> tensor<?x4xf32, #graph.dims<"n", 4>> {
    %y = graph.matmul %x, %w : (tensor<?x8xf32, #graph.dims<"n", 8>>, tensor<8x4xf32>) -> tensor<?x4xf32, #graph.dims<"n", 4>>
    return %y : tensor<?x4xf32, #graph.dims<"n", 4>>
  }
}
