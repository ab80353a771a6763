// Small products with ops before and after: batches of any number, one operand transposed, sizes
// that no vector divides.
!a = tensor<?x?x16xf32, #graph.dims<"batch", "rows", 16>>
!b = tensor<?x16x19xf32, #graph.dims<"batch", 16, 19>>
!c = tensor<?x?x19xf32, #graph.dims<"batch", "rows", 19>>
!x = tensor<?x32xf32, #graph.dims<"rows", 32>>
!y = tensor<?x48xf32, #graph.dims<"rows", 48>>
func.func @main(%a: !a, %b: !b, %mask: tensor<19xf32>, %x: !x, %w: tensor<32x48xf32> {heddle.constant})
    -> (!c, !y) {
  %g = graph.group "small" {mechanism = "contraction"} : !c {
    %zero = graph.constant dense<0.0> : tensor<f32>
    %n = graph.neg %a : !a
    %d = graph.matmul %n, %b : (!a, !b) -> !c
    %m = graph.broadcast %mask : (tensor<19xf32>) -> !c
    %s = graph.add %d, %m : !c
    %z = graph.broadcast %zero : (tensor<f32>) -> !c
    %r = graph.max %s, %z : !c
    graph.yield %r : !c
  }
  %h = graph.group "plain" {mechanism = "contraction"} : !y {
    %d = graph.matmul %x, %w : (!x, tensor<32x48xf32>) -> !y
    graph.yield %d : !y
  }
  return %g, %h : !c, !y
}
