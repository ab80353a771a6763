// Products that oneDNN computes with all that follows, or in part: constant weights and rows of any
// number, batches with a transposed operand, sizes known only at run time, also none at all.
!x = tensor<?x64xf32, #graph.dims<"rows", 64>>
!y = tensor<?x33xf32, #graph.dims<"rows", 33>>
!v = tensor<?x?xf32, #graph.dims<"depth", "columns">>
!u = tensor<?x?xf32, #graph.dims<"rows", "depth">>
!z = tensor<?x?xf32, #graph.dims<"rows", "columns">>
!q = tensor<?x2x?x16xf32, #graph.dims<"batch", 2, "rows", 16>>
!k = tensor<?x2x?x16xf32, #graph.dims<"batch", 2, "columns", 16>>
!t = tensor<?x2x16x?xf32, #graph.dims<"batch", 2, 16, "columns">>
!s = tensor<?x2x?x?xf32, #graph.dims<"batch", 2, "rows", "columns">>
!m = tensor<?x1x1x?xf32, #graph.dims<"batch", 1, 1, "columns">>
!a = tensor<?x?x16xf32, #graph.dims<"batch", "rows", 16>>
!b = tensor<1x16x48xf32>
!c = tensor<?x?x48xf32, #graph.dims<"batch", "rows", 48>>
func.func @main(%x: !x, %w: tensor<64x33xf32> {heddle.constant}, %bias: tensor<33xf32>,
    %residual: !y, %u: !u, %v: !v, %q: !q, %k: !k, %mask: !m, %a: !a, %b: !b {heddle.constant},
    %shift: tensor<48xf32> {heddle.constant}) -> (!y, !z, !s, !c) {
  %g = graph.group "dense" {mechanism = "contraction"} : !y {
    %zero = graph.constant dense<0.0> : tensor<f32>
    %d = graph.matmul %x, %w : (!x, tensor<64x33xf32>) -> !y
    %e = graph.broadcast %bias : (tensor<33xf32>) -> !y
    %s = graph.add %e, %d : !y
    %p = graph.add %s, %residual : !y
    %z = graph.broadcast %zero : (tensor<f32>) -> !y
    %r = graph.max %p, %z : !y
    graph.yield %r : !y
  }
  %h = graph.group "any" {mechanism = "contraction"} : !z {
    %d = graph.matmul %u, %v : (!u, !v) -> !z
    graph.yield %d : !z
  }
  %i = graph.group "scores" {mechanism = "contraction"} : !s {
    %scale = graph.constant dense<0.25> : tensor<f32>
    %o = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (!k) -> !t
    %d = graph.matmul %q, %o : (!q, !t) -> !s
    %f = graph.broadcast %scale : (tensor<f32>) -> !s
    %e = graph.mul %d, %f : !s
    %n = graph.broadcast %mask : (!m) -> !s
    %r = graph.sub %e, %n : !s
    graph.yield %r : !s
  }
  %j = graph.group "gelu" {mechanism = "contraction"} : !c {
    %half = graph.constant dense<0.5> : tensor<f32>
    %root = graph.constant dense<1.41421354> : tensor<f32>
    %one = graph.constant dense<1.0> : tensor<f32>
    %d = graph.matmul %a, %b : (!a, !b) -> !c
    %f = graph.broadcast %shift : (tensor<48xf32>) -> !c
    %e = graph.add %d, %f : !c
    %rs = graph.broadcast %root : (tensor<f32>) -> !c
    %i0 = graph.div %e, %rs : !c
    %i1 = graph.erf %i0 : !c
    %os = graph.broadcast %one : (tensor<f32>) -> !c
    %i2 = graph.add %i1, %os : !c
    %i3 = graph.mul %e, %i2 : !c
    %hs = graph.broadcast %half : (tensor<f32>) -> !c
    %i4 = graph.mul %i3, %hs : !c
    graph.yield %i4 : !c
  }
  return %g, %h, %i, %j : !y, !z, !s, !c
}
