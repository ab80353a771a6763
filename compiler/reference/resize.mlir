// Resize against values of ONNX's own examples and values written by hand.
// RUN: heddle-opt %s --heddle-interpret | FileCheck %s

func.func @main() -> (tensor<6xf32>, tensor<4xf32>, tensor<8xf32>, tensor<7xf32>, tensor<1xf32>, tensor<8xf32>, tensor<8xf32>) {
  %x = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // CHECK: 6xf32 [1, 1, 1, 2, 2, 2]
  %nearest = graph.resize %x {scales = array<f64: 0.0>, mode = "nearest", coordinates = "half_pixel"} : (tensor<2xf32>) -> tensor<6xf32>
  // CHECK-NEXT: 4xf32 [1, 1.25, 1.75, 2]
  %linear = graph.resize %x {scales = array<f64: 2.0>, mode = "linear", coordinates = "half_pixel"} : (tensor<2xf32>) -> tensor<4xf32>
  %y = graph.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  // CHECK-NEXT: 8xf32 [0.8945312, 1.191406, 1.667969, 2.296875, 2.703125, 3.332031, 3.808594, 4.105469]
  %cubic = graph.resize %y {scales = array<f64: 2.0>, mode = "cubic", coordinates = "half_pixel"} : (tensor<4xf32>) -> tensor<8xf32>
  // CHECK-NEXT: 7xf32 [1, 1.5, 2, 2.5, 3, 3.5, 4]
  %corners = graph.resize %y {scales = array<f64: 0.0>, mode = "linear", coordinates = "align_corners"} : (tensor<4xf32>) -> tensor<7xf32>
  // CHECK-NEXT: 1xf32 [1]
  %pytorch = graph.resize %y {scales = array<f64: 0.25>, mode = "linear", coordinates = "pytorch_half_pixel"} : (tensor<4xf32>) -> tensor<1xf32>
  // CHECK-NEXT: 8xf32 [1, 1, 2, 2, 3, 3, 4, 4]
  %floor = graph.resize %y {scales = array<f64: 2.0>, mode = "nearest", coordinates = "asymmetric", nearest = "floor"} : (tensor<4xf32>) -> tensor<8xf32>
  // CHECK-NEXT: 8xf32 [1, 2, 2, 3, 3, 4, 4, 4]
  %ceil = graph.resize %y {scales = array<f64: 2.0>, mode = "nearest", coordinates = "asymmetric", nearest = "ceil"} : (tensor<4xf32>) -> tensor<8xf32>
  return %nearest, %linear, %cubic, %corners, %pytorch, %floor, %ceil : tensor<6xf32>, tensor<4xf32>, tensor<8xf32>, tensor<7xf32>, tensor<1xf32>, tensor<8xf32>, tensor<8xf32>
}
