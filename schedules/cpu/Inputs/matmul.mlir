// Dense layers with bias and relu, for any number of rows: one whose weights are constant, and one
// whose sizes are known only at run time.
!x = tensor<?x64xf32, #graph.dims<"rows", 64>>
!y = tensor<?x128xf32, #graph.dims<"rows", 128>>
!v = tensor<64x?xf32, #graph.dims<64, "columns">>
!z = tensor<?x?xf32, #graph.dims<"rows", "columns">>
func.func @main(%x: !x, %w: tensor<64x128xf32> {heddle.constant}, %bias: tensor<128xf32>,
    %zero: tensor<f32>, %v: !v) -> (!y, !z) {
  %g = graph.group "dense" {mechanism = "contraction"} : !y {
    %d = graph.matmul %x, %w : (!x, tensor<64x128xf32>) -> !y
    %b = graph.broadcast %bias : (tensor<128xf32>) -> !y
    %s = graph.add %d, %b : !y
    %z = graph.broadcast %zero : (tensor<f32>) -> !y
    %r = graph.max %s, %z : !y
    graph.yield %r : !y
  }
  %h = graph.group "any" {mechanism = "contraction"} : !z {
    %d = graph.matmul %x, %v : (!x, !v) -> !z
    graph.yield %d : !z
  }
  return %g, %h : !y, !z
}
