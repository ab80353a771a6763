// Layer normalisation as importers write it, with what follows, and as exporters do, without scale.
!x = tensor<?x?x48xf32, #graph.dims<"batch", "rows", 48>>
!r = tensor<?x?x1xf32, #graph.dims<"batch", "rows", 1>>
!v = tensor<48xf32>
!z = tensor<?x7x5xf32, #graph.dims<"batch", 7, 5>>
!s = tensor<?x1x1xf32, #graph.dims<"batch", 1, 1>>
func.func @main(%x: !x, %scale: !v {heddle.constant}, %shift: !v, %z: !z) -> (!x, !z) {
  %g = graph.group "norm" {mechanism = "rows"} : !x {
    %n = graph.constant dense<0.020833334> : tensor<f32>
    %e = graph.constant dense<1.0e-5> : tensor<f32>
    %o = graph.constant dense<1.0> : tensor<f32>
    %ns = graph.broadcast %n : (tensor<f32>) -> !r
    %es = graph.broadcast %e : (tensor<f32>) -> !r
    %os = graph.broadcast %o : (tensor<f32>) -> !r
    %t = graph.reduce_sum %x {axes = array<i64: 2>, keep_dims = true} : (!x) -> !r
    %m = graph.mul %t, %ns : !r
    %mb = graph.broadcast %m : (!r) -> !x
    %c = graph.sub %x, %mb : !x
    %q = graph.mul %c, %c : !x
    %u = graph.reduce_sum %q {axes = array<i64: 2>, keep_dims = true} : (!x) -> !r
    %w = graph.mul %u, %ns : !r
    %a = graph.add %w, %es : !r
    %d = graph.sqrt %a : !r
    %i = graph.div %os, %d : !r
    %ib = graph.broadcast %i : (!r) -> !x
    %y = graph.mul %c, %ib : !x
    %sb = graph.broadcast %scale : (!v) -> !x
    %y1 = graph.mul %y, %sb : !x
    %hb = graph.broadcast %shift : (!v) -> !x
    %y2 = graph.add %y1, %hb : !x
    %y3 = graph.tanh %y2 : !x
    graph.yield %y3 : !x
  }
  %h = graph.group "plain" {mechanism = "rows"} : !z {
    %n = graph.constant dense<35.0> : tensor<f32>
    %e = graph.constant dense<1.0e-6> : tensor<f32>
    %p = graph.constant dense<2.0> : tensor<f32>
    %ns = graph.broadcast %n : (tensor<f32>) -> !s
    %es = graph.broadcast %e : (tensor<f32>) -> !s
    %ps = graph.broadcast %p : (tensor<f32>) -> !z
    %t = graph.reduce_sum %z {axes = array<i64: 1, 2>, keep_dims = true} : (!z) -> !s
    %m = graph.div %t, %ns : !s
    %mb = graph.broadcast %m : (!s) -> !z
    %c = graph.sub %z, %mb : !z
    %q = graph.pow %c, %ps : !z
    %u = graph.reduce_sum %q {axes = array<i64: 1, 2>, keep_dims = true} : (!z) -> !s
    %w = graph.div %u, %ns : !s
    %a = graph.add %w, %es : !s
    %d = graph.sqrt %a : !s
    %db = graph.broadcast %d : (!s) -> !z
    %y = graph.div %c, %db : !z
    graph.yield %y : !z
  }
  return %g, %h : !x, !z
}
