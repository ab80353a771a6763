// Softmax over the last dimension, of any size.
!m = tensor<?x?xf32, #graph.dims<"batch", "columns">>
!r = tensor<?x1xf32, #graph.dims<"batch", 1>>
func.func @main(%d: !m) -> !m {
  %g = graph.group "softmax" {mechanism = "rows"} : !m {
    %x = graph.reduce_max %d {axes = array<i64: 1>, keep_dims = true} : (!m) -> !r
    %xb = graph.broadcast %x : (!r) -> !m
    %s = graph.sub %d, %xb : !m
    %e = graph.exp %s : !m
    %t = graph.reduce_sum %e {axes = array<i64: 1>, keep_dims = true} : (!m) -> !r
    %tb = graph.broadcast %t : (!r) -> !m
    %q = graph.div %e, %tb : !m
    graph.yield %q : !m
  }
  return %g : !m
}
