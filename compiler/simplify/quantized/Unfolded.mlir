// RUN: heddle-opt %s --heddle-simplify-unfolded | FileCheck %s

// The module notes the product in floats whose right side has a scale for each of its rows.
// CHECK: graph.unfolded = [{node = "product", op = "matmul", why = "{{.*}}has a scale that differs along axis 0; it may do so only along 1, as the result does"}]
module {
func.func @scales_of_the_reduction(%a: tensor<3x2xi8>, %b: tensor<2x4xi8>,
                                   %sb: tensor<2x1xf32>) -> tensor<3x4xf32> {
  %sa = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.cast %a : (tensor<3x2xi8>) -> tensor<3x2xf32>
  %1 = graph.broadcast %sa : (tensor<f32>) -> tensor<3x2xf32>
  %2 = graph.mul %0, %1 : tensor<3x2xf32>
  %3 = graph.cast %b : (tensor<2x4xi8>) -> tensor<2x4xf32>
  %4 = graph.broadcast %sb : (tensor<2x1xf32>) -> tensor<2x4xf32>
  %5 = graph.mul %3, %4 : tensor<2x4xf32>
  %6 = graph.matmul %2, %5 : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32> loc("product")
  return %6 : tensor<3x4xf32>
}

// Nothing here was ever quantised.
func.func @floats(%a: tensor<3x2xf32>, %b: tensor<2x4xf32>) -> tensor<3x4xf32> {
  %0 = graph.matmul %a, %b : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32> loc("floats")
  return %0 : tensor<3x4xf32>
}
}
