// Floats that become integers of 8 bits: bounds come first, so that one instruction rounds.
// RUN: heddle-opt %s --split-input-file --heddle-plan --heddle-lower --canonicalize --cse | FileCheck %s

// Bounds are products with the step, 0.5: (0 - 3) / 2 and (255 - 3) / 2.
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[LOW:.*]] = arith.maximumf %{{.*}}, %{{.*}} fastmath<nsz>
// CHECK: %[[X:.*]] = arith.minimumf %[[LOW]], %{{.*}} fastmath<nsz>
// CHECK: %[[Q:.*]] = arith.divf %[[X]], %{{.*}} {program.steps}
// CHECK: %[[R:.*]] = math.roundeven %[[Q]]
// CHECK: %[[S:.*]] = arith.addf %[[R]], %{{.*}}
// CHECK: arith.fptosi %[[S]]
func.func @main(%x: tensor<64xf32>) -> tensor<64xui8> {
  %step = graph.constant dense<0.5> : tensor<64xf32>
  %zero = graph.constant dense<3.0> : tensor<64xf32>
  %least = graph.constant dense<0.0> : tensor<64xf32>
  %most = graph.constant dense<255.0> : tensor<64xf32>
  %0 = graph.div %x, %step : tensor<64xf32>
  %1 = graph.round %0 : tensor<64xf32>
  %2 = graph.add %1, %zero : tensor<64xf32>
  %3 = graph.max %2, %least : tensor<64xf32>
  %4 = graph.min %3, %most : tensor<64xf32>
  %5 = graph.cast %4 : (tensor<64xf32>) -> tensor<64xui8>
  return %5 : tensor<64xui8>
}

// -----

// A step that is computed in the run is divided by; its quotient is bounded before it is rounded.
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[Q:.*]] = arith.divf %{{.*}}, %{{.*}} : vector
// CHECK: %[[LOW:.*]] = arith.maximumf %[[Q]], %{{.*}} fastmath<nsz>
// CHECK: %[[X:.*]] = arith.minimumf %[[LOW]], %{{.*}} fastmath<nsz>
// CHECK: %[[R:.*]] = math.roundeven %[[X]]
// CHECK: arith.fptosi %[[R]]
func.func @main(%x: tensor<64xf32>, %s: tensor<f32>) -> tensor<64xi8> {
  %step = graph.broadcast %s : (tensor<f32>) -> tensor<64xf32>
  %least = graph.constant dense<-128.0> : tensor<64xf32>
  %most = graph.constant dense<127.0> : tensor<64xf32>
  %0 = graph.div %x, %step : tensor<64xf32>
  %1 = graph.round %0 : tensor<64xf32>
  %2 = graph.max %1, %least : tensor<64xf32>
  %3 = graph.min %2, %most : tensor<64xf32>
  %4 = graph.cast %3 : (tensor<64xf32>) -> tensor<64xi8>
  return %4 : tensor<64xi8>
}

// -----

// A bound that is no whole number is none of what was rounded.
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[R:.*]] = math.roundeven
// CHECK: arith.maximumf %[[R]]
func.func @main(%x: tensor<64xf32>) -> tensor<64xi8> {
  %least = graph.constant dense<-3.5> : tensor<64xf32>
  %most = graph.constant dense<127.0> : tensor<64xf32>
  %1 = graph.round %x : tensor<64xf32>
  %2 = graph.max %1, %least : tensor<64xf32>
  %3 = graph.min %2, %most : tensor<64xf32>
  %4 = graph.cast %3 : (tensor<64xf32>) -> tensor<64xi8>
  return %4 : tensor<64xi8>
}
