// RUN: heddle-opt %s --heddle-simplify-unsigned --heddle-simplify-algebra | FileCheck %s

module {
// A zero point of -128 becomes 0: neither is added before nor taken away after.
// CHECK-LABEL: @left_side
// CHECK: %[[R:.*]] = graph.round %arg0
// CHECK: %[[L:.*]] = graph.max %[[R]]
// CHECK: %[[H:.*]] = graph.min %[[L]]
// CHECK: %[[Q:.*]] = graph.cast %[[H]] : (tensor<3x2xf32>) -> tensor<3x2xui8>
// CHECK: %[[W:.*]] = graph.cast %[[Q]] : (tensor<3x2xui8>) -> tensor<3x2xi32>
// CHECK: graph.matmul %[[W]], %arg1
func.func @left_side(%x: tensor<3x2xf32>, %b: tensor<2x4xi32>) -> tensor<3x4xi32> {
  %z = graph.constant dense<-128.0> : tensor<3x2xf32>
  %zi = graph.constant dense<-128> : tensor<3x2xi32>
  %high = graph.constant dense<127.0> : tensor<3x2xf32>
  %0 = graph.round %x : tensor<3x2xf32>
  %1 = graph.add %0, %z : tensor<3x2xf32>
  %2 = graph.max %1, %z : tensor<3x2xf32>
  %3 = graph.min %2, %high : tensor<3x2xf32>
  %4 = graph.cast %3 : (tensor<3x2xf32>) -> tensor<3x2xi8>
  %5 = graph.cast %4 : (tensor<3x2xi8>) -> tensor<3x2xi32>
  %6 = graph.sub %5, %zi : tensor<3x2xi32>
  %7 = graph.matmul %6, %b : (tensor<3x2xi32>, tensor<2x4xi32>) -> tensor<3x4xi32>
  return %7 : tensor<3x4xi32>
}

// A right side keeps its sign.
// CHECK-LABEL: @right_side
// CHECK: graph.cast {{.*}} -> tensor<3x2xi8>
func.func @right_side(%x: tensor<3x2xf32>, %b: tensor<4x3xi32>) -> tensor<4x2xi32> {
  %low = graph.constant dense<-128.0> : tensor<3x2xf32>
  %high = graph.constant dense<127.0> : tensor<3x2xf32>
  %0 = graph.round %x : tensor<3x2xf32>
  %1 = graph.max %0, %low : tensor<3x2xf32>
  %2 = graph.min %1, %high : tensor<3x2xf32>
  %3 = graph.cast %2 : (tensor<3x2xf32>) -> tensor<3x2xi8>
  %4 = graph.cast %3 : (tensor<3x2xi8>) -> tensor<3x2xi32>
  %5 = graph.matmul %b, %4 : (tensor<4x3xi32>, tensor<3x2xi32>) -> tensor<4x2xi32>
  return %5 : tensor<4x2xi32>
}
}
