// A row over its root mean square, times weights.
!x = tensor<?x?x512xf32, #graph.dims<"batch", "sequence", 512>>
!r = tensor<?x?x1xf32, #graph.dims<"batch", "sequence", 1>>
func.func @main(%x: !x, %w: tensor<512xf32>) -> !x {
  %n = graph.constant dense<0.001953125> : tensor<f32>
  %y = graph.group "norm" {mechanism = "rows"} : !x {
    %s = graph.mul %x, %x : !x
    %t = graph.reduce_sum %s {axes = array<i64: 2>, keep_dims = true} : (!x) -> !r
    %nb = graph.broadcast %n : (tensor<f32>) -> !r
    %m = graph.mul %t, %nb : !r
    %q = graph.sqrt %m : !r
    %qb = graph.broadcast %q : (!r) -> !x
    %d = graph.div %x, %qb : !x
    %wb = graph.broadcast %w : (tensor<512xf32>) -> !x
    %z = graph.mul %d, %wb : !x
    graph.yield %z : !x
  }
  return %y : !x
}
