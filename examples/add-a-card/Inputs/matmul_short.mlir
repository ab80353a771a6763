// Two products: one that the card is for, and one whose reduction is too long.
!a = tensor<?x16xf32, #graph.dims<"rows", 16>>
!c = tensor<?x48xf32, #graph.dims<"rows", 48>>
func.func @main(%a: !a, %b: tensor<16x16xf32> {heddle.constant}, %c: !c, %d: tensor<48x16xf32>) -> (!a, !a) {
  %s = graph.group "short" {mechanism = "contraction"} : !a {
    %p = graph.matmul %a, %b : (!a, tensor<16x16xf32>) -> !a
    graph.yield %p : !a
  }
  %l = graph.group "long" {mechanism = "contraction"} : !a {
    %p = graph.matmul %c, %d : (!c, tensor<48x16xf32>) -> !a
    graph.yield %p : !a
  }
  return %s, %l : !a, !a
}
