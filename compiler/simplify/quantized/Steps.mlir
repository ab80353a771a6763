// RUN: heddle-opt %s --heddle-simplify-quantized | FileCheck %s

module {
// Of 256 values, the product gives the integers that the division gives; 0 is the lower bound anyway.
// CHECK-LABEL: @rescaled
// CHECK: %[[F:.*]] = graph.cast %arg0 : (tensor<4xui8>) -> tensor<4xf32>
// CHECK: %[[M:.*]] = graph.mul %[[F]]
// CHECK: %[[R:.*]] = graph.round %[[M]]
// CHECK: %[[L:.*]] = graph.max %[[R]]
// CHECK: graph.min %[[L]]
func.func @rescaled(%q: tensor<4xui8>) -> tensor<4xi8> {
  %s = graph.constant dense<0.3> : tensor<4xf32>
  %t = graph.constant dense<0.7> : tensor<4xf32>
  %zero = graph.constant dense<0.0> : tensor<4xf32>
  %high = graph.constant dense<127.0> : tensor<4xf32>
  %0 = graph.cast %q : (tensor<4xui8>) -> tensor<4xf32>
  %1 = graph.mul %0, %s : tensor<4xf32>
  %2 = graph.max %1, %zero : tensor<4xf32>
  %3 = graph.div %2, %t : tensor<4xf32>
  %4 = graph.round %3 : tensor<4xf32>
  %5 = graph.max %4, %zero : tensor<4xf32>
  %6 = graph.min %5, %high : tensor<4xf32>
  %7 = graph.cast %6 : (tensor<4xf32>) -> tensor<4xi8>
  return %7 : tensor<4xi8>
}

// Of the sum of two there are 65536 values to try.
// CHECK-LABEL: @sum
// CHECK-NOT: graph.div
// CHECK: return
func.func @sum(%p: tensor<4xui8>, %q: tensor<4xi8>) -> tensor<4xf32> {
  %s = graph.constant dense<0.3> : tensor<4xf32>
  %t = graph.constant dense<0.7> : tensor<4xf32>
  %u = graph.constant dense<0.9> : tensor<4xf32>
  %0 = graph.cast %p : (tensor<4xui8>) -> tensor<4xf32>
  %1 = graph.mul %0, %s : tensor<4xf32>
  %2 = graph.cast %q : (tensor<4xi8>) -> tensor<4xf32>
  %3 = graph.mul %2, %t : tensor<4xf32>
  %4 = graph.add %1, %3 : tensor<4xf32>
  %5 = graph.div %4, %u : tensor<4xf32>
  %6 = graph.round %5 : tensor<4xf32>
  return %6 : tensor<4xf32>
}

// Of other floats nothing is known.
// CHECK-LABEL: @leaves_floats
// CHECK: graph.div
func.func @leaves_floats(%x: tensor<4xf32>) -> tensor<4xf32> {
  %t = graph.constant dense<0.7> : tensor<4xf32>
  %0 = graph.div %x, %t : tensor<4xf32>
  %1 = graph.round %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
}
