// The two largest of three.
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>) {
  %g:2 = graph.group "topk" {kind = "serial"} : tensor<2x2xf32>, tensor<2x2xi64> {
    %t:2 = graph.topk %x {axis = 1} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
    graph.yield %t#0, %t#1 : tensor<2x2xf32>, tensor<2x2xi64>
  }
  return %g#0, %g#1 : tensor<2x2xf32>, tensor<2x2xi64>
}
