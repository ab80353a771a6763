// A dense layer with bias and relu, for any number of rows.
!x = tensor<?x64xf32, #graph.dims<"rows", 64>>
!y = tensor<?x128xf32, #graph.dims<"rows", 128>>
func.func @main(%x: !x, %w: tensor<64x128xf32>, %bias: tensor<128xf32>, %zero: tensor<f32>) -> !y {
  %g = graph.group "dense" {kind = "contraction"} : !y {
    %d = graph.matmul %x, %w : (!x, tensor<64x128xf32>) -> !y
    %b = graph.broadcast %bias : (tensor<128xf32>) -> !y
    %s = graph.add %d, %b : !y
    %z = graph.broadcast %zero : (tensor<f32>) -> !y
    %r = graph.max %s, %z : !y
    graph.yield %r : !y
  }
  return %g : !y
}
