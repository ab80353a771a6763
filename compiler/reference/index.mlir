// Gather and scatter against values written by hand.
// RUN: heddle-opt %s --heddle-interpret | FileCheck %s

func.func @main() -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<3xi32>,
    tensor<3x2xi32>, tensor<2x2xf32>, tensor<3xf32>) {
  %x = graph.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %i = graph.constant dense<[-1, 0]> : tensor<2xi64>
  // CHECK: 2x2xf32 {{\[\[}}3, 1], [6, 4]]
  %gather = graph.gather %x, %i {axis = 1} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %e = graph.constant dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>
  // CHECK-NEXT: 2x2xf32 {{\[\[}}1, 5], [4, 2]]
  %elements = graph.gather_elements %x, %e {axis = 0} : (tensor<2x3xf32>, tensor<2x2xi64>) -> tensor<2x2xf32>
  // CHECK-NEXT: 2xf32 [2, 4]
  %nd = graph.gather_nd %x, %e {batch_dims = 0} : (tensor<2x3xf32>, tensor<2x2xi64>) -> tensor<2xf32>
  %u = graph.constant dense<[[10.0, 20.0], [30.0, 40.0]]> : tensor<2x2xf32>
  // CHECK-NEXT: 2x3xf32 {{\[\[}}10, 40, 3], [30, 20, 6]]
  %scatter = graph.scatter_elements %x, %e, %u {axis = 0} : (tensor<2x3xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x3xf32>
  %v = graph.constant dense<[1, 2, 3]> : tensor<3xi32>
  %twice = graph.constant dense<[1, 1]> : tensor<2xi64>
  %w = graph.constant dense<[10, 20]> : tensor<2xi32>
  // CHECK-NEXT: 3xi32 [1, 32, 3]
  %add = graph.scatter_elements %v, %twice, %w {axis = 0, reduction = "add"} : (tensor<3xi32>, tensor<2xi64>, tensor<2xi32>) -> tensor<3xi32>
  %m = graph.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %rows = graph.constant dense<[[2], [0]]> : tensor<2x1xi64>
  %with = graph.constant dense<[[0, 9], [0, 9]]> : tensor<2x2xi32>
  // CHECK-NEXT: 3x2xi32 {{\[\[}}1, 9], [3, 4], [5, 9]]
  %max = graph.scatter_nd %m, %rows, %with {reduction = "max"} : (tensor<3x2xi32>, tensor<2x1xi64>, tensor<2x2xi32>) -> tensor<3x2xi32>
  %bi = graph.constant dense<[[[2], [0]], [[1], [-1]]]> : tensor<2x2x1xi64>
  // CHECK-NEXT: 2x2xf32 {{\[\[}}3, 1], [5, 6]]
  %batched = graph.gather_nd %x, %bi {batch_dims = 1} : (tensor<2x3xf32>, tensor<2x2x1xi64>) -> tensor<2x2xf32>
  %one = graph.constant dense<1> : tensor<i64>
  // CHECK-NEXT: 3xf32 [4, 5, 6]
  %row = graph.gather %x, %one {axis = 0} : (tensor<2x3xf32>, tensor<i64>) -> tensor<3xf32>
  return %gather, %elements, %nd, %scatter, %add, %max, %batched, %row : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>,
    tensor<2x3xf32>, tensor<3xi32>, tensor<3x2xi32>, tensor<2x2xf32>, tensor<3xf32>
}
