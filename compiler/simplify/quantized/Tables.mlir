// RUN: heddle-opt %s --heddle-simplify-tables | FileCheck %s

// sigmoid(0) = 0.5 is 127.5 steps of 1/255, and half of a step goes to the even one.
// CHECK-LABEL: @sigmoid
// CHECK: %[[L:.*]] = graph.lookup %arg0 {table = dense<"0x80
// CHECK-SAME: (tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: return %[[L]]
func.func @sigmoid(%q: tensor<4xui8>) -> tensor<4xui8> {
  %t = graph.constant dense<255.0> : tensor<4xf32>
  %0 = graph.cast %q : (tensor<4xui8>) -> tensor<4xf32>
  %1 = graph.sigmoid %0 : tensor<4xf32>
  %2 = graph.mul %1, %t : tensor<4xf32>
  %3 = graph.round %2 : tensor<4xf32>
  %4 = graph.cast %3 : (tensor<4xf32>) -> tensor<4xui8>
  return %4 : tensor<4xui8>
}

// The longer chain goes after the 8 bits in its middle, though they are a result, too.
// CHECK-LABEL: @two
// CHECK: %[[M:.*]] = graph.lookup %arg0
// CHECK: %[[L:.*]] = graph.lookup %arg0
// CHECK: return %[[M]], %[[L]]
func.func @two(%q: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xui8>) {
  %0 = graph.cast %q : (tensor<4xi8>) -> tensor<4xf32>
  %1 = graph.tanh %0 : tensor<4xf32>
  %2 = graph.cast %1 : (tensor<4xf32>) -> tensor<4xi8>
  %3 = graph.cast %2 : (tensor<4xi8>) -> tensor<4xf32>
  %4 = graph.mul %3, %0 : tensor<4xf32>
  %5 = graph.exp %4 : tensor<4xf32>
  %6 = graph.cast %5 : (tensor<4xf32>) -> tensor<4xui8>
  return %2, %6 : tensor<4xi8>, tensor<4xui8>
}

// A requantisation takes fewer instructions than a table.
// CHECK-LABEL: @short
// CHECK-NOT: graph.lookup
func.func @short(%q: tensor<4xi8>) -> tensor<4xi8> {
  %t = graph.constant dense<0.7> : tensor<4xf32>
  %0 = graph.cast %q : (tensor<4xi8>) -> tensor<4xf32>
  %1 = graph.mul %0, %t : tensor<4xf32>
  %2 = graph.round %1 : tensor<4xf32>
  %3 = graph.cast %2 : (tensor<4xf32>) -> tensor<4xi8>
  return %3 : tensor<4xi8>
}

// Of two tensors, or with a number for each channel, there are more than 256 values.
// CHECK-LABEL: @more
// CHECK-NOT: graph.lookup
func.func @more(%q: tensor<4xi8>, %r: tensor<4xi8>, %c: tensor<4xf32>) -> (tensor<4xi8>, tensor<4xi8>) {
  %0 = graph.cast %q : (tensor<4xi8>) -> tensor<4xf32>
  %1 = graph.cast %r : (tensor<4xi8>) -> tensor<4xf32>
  %2 = graph.pow %0, %1 : tensor<4xf32>
  %3 = graph.cast %2 : (tensor<4xf32>) -> tensor<4xi8>
  %4 = graph.mul %0, %c : tensor<4xf32>
  %5 = graph.exp %4 : tensor<4xf32>
  %6 = graph.cast %5 : (tensor<4xf32>) -> tensor<4xi8>
  return %3, %6 : tensor<4xi8>, tensor<4xi8>
}
