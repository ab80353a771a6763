// The gradient of an attention of 4 heads of 16, for any batch and length.
!q = tensor<?x4x?x16xf32, #graph.dims<"batch", 4, "length", 16>>
!k = tensor<?x4x16x?xf32, #graph.dims<"batch", 4, 16, "length">>
!s = tensor<?x4x?x?xf32, #graph.dims<"batch", 4, "length", "length">>
!r = tensor<?x4x?x1xf32, #graph.dims<"batch", 4, "length", 1>>
func.func @main(%q: !q, %k: !q, %v: !q, %d: !q) -> (!q, !q, !q) {
  %g:3 = graph.group "attention" {mechanism = "attention_gradient"} : !q, !q, !q {
    %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (!q) -> !k
    %s = graph.matmul %q, %kt : (!q, !k) -> !s
    %x = graph.reduce_max %s {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
    %xb = graph.broadcast %x : (!r) -> !s
    %m = graph.sub %s, %xb : !s
    %e = graph.exp %m : !s
    %t = graph.reduce_sum %e {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
    %tb = graph.broadcast %t : (!r) -> !s
    %p = graph.div %e, %tb : !s
    %pt = graph.transpose %p {permutation = array<i64: 0, 1, 3, 2>} : (!s) -> !s
    %dv = graph.matmul %pt, %d : (!s, !q) -> !q
    %vt = graph.transpose %v {permutation = array<i64: 0, 1, 3, 2>} : (!q) -> !k
    %dp = graph.matmul %d, %vt : (!q, !k) -> !s
    %w = graph.mul %p, %dp : !s
    %u = graph.reduce_sum %w {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
    %ub = graph.broadcast %u : (!r) -> !s
    %c = graph.sub %dp, %ub : !s
    %ds = graph.mul %p, %c : !s
    %dq = graph.matmul %ds, %k : (!s, !q) -> !q
    %dst = graph.transpose %ds {permutation = array<i64: 0, 1, 3, 2>} : (!s) -> !s
    %dk = graph.matmul %dst, %q : (!s, !q) -> !q
    graph.yield %dk, %dv, %dq : !q, !q, !q
  }
  return %g#0, %g#1, %g#2 : !q, !q, !q
}
