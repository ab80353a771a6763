// RUN: heddle-opt %s --heddle-simplify-dynamic | FileCheck %s

module {
// Rows are scaled by their largest numbers, columns of weights when the model is compiled.
// CHECK-LABEL: @product
// CHECK: %[[A:.*]] = graph.abs %arg0
// CHECK: %[[M:.*]] = graph.reduce_max %[[A]]
// CHECK: graph.select
// CHECK: %[[R:.*]] = graph.round
// CHECK: %[[Q:.*]] = graph.cast {{.*}} : (tensor<5x32xf32>) -> tensor<5x32xui8>
// CHECK: %[[W:.*]] = graph.cast %[[Q]] : (tensor<5x32xui8>) -> tensor<5x32xi32>
// CHECK: %[[S:.*]] = graph.sub %[[W]]
// CHECK: %[[I:.*]] = graph.cast {{.*}} : (tensor<32x16xi8>) -> tensor<32x16xi32>
// CHECK: graph.matmul %[[S]], %[[I]] : (tensor<5x32xi32>, tensor<32x16xi32>) -> tensor<5x16xi32>
// CHECK: graph.constant dense<{{.*}}> : tensor<16xf32>
func.func @product(%x: tensor<5x32xf32>) -> tensor<5x16xf32> {
  %w = graph.constant dense<3.0> : tensor<32x16xf32> loc("weight")
  %0 = graph.matmul %x, %w : (tensor<5x32xf32>, tensor<32x16xf32>) -> tensor<5x16xf32> loc("fc")
  return %0 : tensor<5x16xf32>
}

// Weights that are not finite, few rows of them, and those that a run has stay.
// CHECK-LABEL: @others
// CHECK-COUNT-3: graph.matmul {{.*}} -> tensor<5x16xf32>
func.func @others(%x: tensor<5x32xf32>, %y: tensor<5x31xf32>, %v: tensor<32x16xf32>)
    -> (tensor<5x16xf32>, tensor<5x16xf32>, tensor<5x16xf32>) {
  %w = graph.constant dense<0x7F800000> : tensor<32x16xf32>
  %n = graph.constant dense<1.0> : tensor<31x16xf32>
  %0 = graph.matmul %x, %w : (tensor<5x32xf32>, tensor<32x16xf32>) -> tensor<5x16xf32> loc("a")
  %1 = graph.matmul %y, %n : (tensor<5x31xf32>, tensor<31x16xf32>) -> tensor<5x16xf32> loc("b")
  %2 = graph.matmul %x, %v : (tensor<5x32xf32>, tensor<32x16xf32>) -> tensor<5x16xf32> loc("c")
  return %0, %1, %2 : tensor<5x16xf32>, tensor<5x16xf32>, tensor<5x16xf32>
}

// Weights that are stored in blocks stay so, and rows are rounded in these.
// CHECK-LABEL: @blocks
// CHECK: graph.constant #graph.stored<codes = {{.*}} : tensor<128x256xi8>, scales = {{.*}} : tensor<4x256xf32>> : tensor<128x256xf32>
// CHECK-NEXT: graph.matmul {{.*}} {block = 32 : i64}
func.func @blocks(%x: tensor<3x128xf32>) -> tensor<3x256xf32> {
  %q = graph.constant dense<7> : tensor<4x32x256xi8>
  %s = graph.constant dense<0.5> : tensor<4x1x256xf32>
  %0 = graph.cast %q : (tensor<4x32x256xi8>) -> tensor<4x32x256xf32>
  %1 = graph.broadcast %s : (tensor<4x1x256xf32>) -> tensor<4x32x256xf32>
  %2 = graph.mul %0, %1 : tensor<4x32x256xf32>
  %3 = graph.reshape %2 : (tensor<4x32x256xf32>) -> tensor<128x256xf32>
  %4 = graph.matmul %x, %3 : (tensor<3x128xf32>, tensor<128x256xf32>) -> tensor<3x256xf32> loc("fc")
  return %4 : tensor<3x256xf32>
}
}
