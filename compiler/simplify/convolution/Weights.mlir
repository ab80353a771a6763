// RUN: heddle-opt %s --heddle-simplify-weights | FileCheck %s

// CHECK-LABEL: @takes_a_number_as_weights
func.func @takes_a_number_as_weights(%x: tensor<4x3xf32>) -> tensor<4x5xf32> {
  %c = graph.constant dense<0.5> : tensor<f32>
  %w = graph.broadcast %c : (tensor<f32>) -> tensor<3x5xf32>
  // CHECK: %[[W:.*]] = graph.constant dense<5.000000e-01> : tensor<3x5xf32>
  // CHECK: graph.matmul %{{.*}}, %[[W]]
  %y = graph.matmul %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// CHECK-LABEL: @leaves_other_broadcasts
func.func @leaves_other_broadcasts(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %c = graph.constant dense<0.5> : tensor<f32>
  // CHECK: graph.broadcast
  %w = graph.broadcast %c : (tensor<f32>) -> tensor<4x3xf32>
  %y = graph.add %x, %w : tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
