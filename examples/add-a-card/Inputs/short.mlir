// Two products: one that the card is for, and one whose reduction is too long.
func.func @main(%a: tensor<64x16xf32>, %b: tensor<16x16xf32>, %c: tensor<64x48xf32>, %d: tensor<48x16xf32>)
    -> (tensor<64x16xf32>, tensor<64x16xf32>) {
  %s = graph.group "short" {kind = "contraction"} : tensor<64x16xf32> {
    %p = graph.matmul %a, %b : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
    graph.yield %p : tensor<64x16xf32>
  }
  %l = graph.group "long" {kind = "contraction"} : tensor<64x16xf32> {
    %p = graph.matmul %c, %d : (tensor<64x48xf32>, tensor<48x16xf32>) -> tensor<64x16xf32>
    graph.yield %p : tensor<64x16xf32>
  }
  return %s, %l : tensor<64x16xf32>, tensor<64x16xf32>
}
