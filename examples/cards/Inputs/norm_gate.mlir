// A gated unit after RMSNorm, 96 by 80, for any number of rows.
!x = tensor<?x96xf32, #graph.dims<"m", 96>>
!r = tensor<?x1xf32, #graph.dims<"m", 1>>
!y = tensor<?x80xf32, #graph.dims<"m", 80>>
func.func @main(%x: !x, %scale: tensor<96xf32>, %a: tensor<96x80xf32>,
    %b: tensor<96x80xf32>) -> !y {
  %length = graph.constant dense<96.0> : tensor<f32>
  %epsilon = graph.constant dense<1.0e-6> : tensor<f32>
  %g = graph.group "y" {mechanism = "kernel.nest"} : !y {
    %square = graph.mul %x, %x : !x
    %sum = graph.reduce_sum %square {axes = array<i64: 1>, keep_dims = true} : (!x) -> !r
    %lengths = graph.broadcast %length : (tensor<f32>) -> !r
    %mean = graph.div %sum, %lengths : !r
    %epsilons = graph.broadcast %epsilon : (tensor<f32>) -> !r
    %shifted = graph.add %mean, %epsilons : !r
    %root = graph.sqrt %shifted : !r
    %roots = graph.broadcast %root : (!r) -> !x
    %unit = graph.div %x, %roots : !x
    %scales = graph.broadcast %scale : (tensor<96xf32>) -> !x
    %norm = graph.mul %unit, %scales : !x
    %gate = graph.matmul %norm, %a : (!x, tensor<96x80xf32>) -> !y
    %up = graph.matmul %norm, %b : (!x, tensor<96x80xf32>) -> !y
    %half = graph.sigmoid %gate : !y
    %silu = graph.mul %gate, %half : !y
    %y = graph.mul %silu, %up : !y
    graph.yield %y : !y
  }
  return %g : !y
}
