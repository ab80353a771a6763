// Attention with a scale, 4 heads of 16, for any batch and length.
!q = tensor<?x4x?x16xf32, #graph.dims<"batch", 4, "length", 16>>
!k = tensor<?x4x16x?xf32, #graph.dims<"batch", 4, 16, "length">>
!s = tensor<?x4x?x?xf32, #graph.dims<"batch", 4, "length", "length">>
!r = tensor<?x4x?x1xf32, #graph.dims<"batch", 4, "length", 1>>
func.func @main(%q: !q, %k: !k, %v: !q, %scale: tensor<f32>) -> !q {
  %g = graph.group "attention" {mechanism = "attention"} : !q {
    %d = graph.matmul %q, %k : (!q, !k) -> !s
    %c = graph.broadcast %scale : (tensor<f32>) -> !s
    %l = graph.mul %d, %c : !s
    %x = graph.reduce_max %l {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
    %xb = graph.broadcast %x : (!r) -> !s
    %m = graph.sub %l, %xb : !s
    %e = graph.exp %m : !s
    %t = graph.reduce_sum %e {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
    %tb = graph.broadcast %t : (!r) -> !s
    %p = graph.div %e, %tb : !s
    %o = graph.matmul %p, %v : (!s, !q) -> !q
    graph.yield %o : !q
  }
  return %g : !q
}
