// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// An example whose result is zero whatever its product does.
// CHECK: {{.*}}/example_of_nothing.mlir: error: the example proves nothing: no result changes when the result of 'graph.matmul' is changed; write one whose results depend on its ops
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
  func.func @example(%x: tensor<?x8xf32, #graph.dims<"n", 8>>)
      -> tensor<?x4xf32, #graph.dims<"n", 4>> {
    %w = graph.constant dense<0.0> : tensor<8x4xf32>
    %y = graph.matmul %x, %w : (tensor<?x8xf32, #graph.dims<"n", 8>>, tensor<8x4xf32>) -> tensor<?x4xf32, #graph.dims<"n", 4>>
    return %y : tensor<?x4xf32, #graph.dims<"n", 4>>
  }
}
