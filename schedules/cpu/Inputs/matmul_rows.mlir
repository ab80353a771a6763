// A projection, its residual, and the product divided by the norm of its row.
!x = tensor<?x24xf32, #graph.dims<"rows", 24>>
!m = tensor<?x40xf32, #graph.dims<"rows", 40>>
!r = tensor<?x1xf32, #graph.dims<"rows", 1>>
func.func @main(%x: !x, %b: tensor<24x40xf32> {heddle.constant}, %y: !m) -> !m {
  %g = graph.group "projection" {mechanism = "stitch"} : !m {
    %p = graph.matmul %x, %b : (!x, tensor<24x40xf32>) -> !m
    %s = graph.add %p, %y : !m
    %q = graph.mul %s, %s : !m
    %t = graph.reduce_sum %q {axes = array<i64: 1>, keep_dims = true} : (!m) -> !r
    %n = graph.sqrt %t : !r
    %nb = graph.broadcast %n : (!r) -> !m
    %d = graph.div %s, %nb : !m
    graph.yield %d : !m
  }
  return %g : !m
}
