// RUN: heddle-opt %s --heddle-simplify-stored | FileCheck %s

module {
// Blocks of 32 rows, read transposed: [N, blocks, block] -> [K, N].
// CHECK-LABEL: @blocks
// CHECK: graph.constant #graph.stored<codes = {{.*}} : tensor<128x256xui8>, scales = {{.*}} : tensor<4x256xf32>, zeros = {{.*}} : tensor<4x256xf32>> : tensor<128x256xf32>
// CHECK-NEXT: graph.matmul
func.func @blocks(%x: tensor<3x128xf32>) -> tensor<3x256xf32> {
  %q = graph.constant dense<7> : tensor<256x4x32xui8>
  %s = graph.constant dense<0.5> : tensor<256x4x1xf32>
  %z = graph.constant dense<8> : tensor<256x4x1xui8>
  %0 = graph.cast %q : (tensor<256x4x32xui8>) -> tensor<256x4x32xf32>
  %1 = graph.cast %z : (tensor<256x4x1xui8>) -> tensor<256x4x1xf32>
  %2 = graph.broadcast %1 : (tensor<256x4x1xf32>) -> tensor<256x4x32xf32>
  %3 = graph.broadcast %s : (tensor<256x4x1xf32>) -> tensor<256x4x32xf32>
  %4 = graph.sub %0, %2 : tensor<256x4x32xf32>
  %5 = graph.mul %4, %3 : tensor<256x4x32xf32>
  %6 = graph.reshape %5 : (tensor<256x4x32xf32>) -> tensor<256x128xf32>
  %7 = graph.transpose %6 {permutation = array<i64: 1, 0>} : (tensor<256x128xf32>) -> tensor<128x256xf32>
  %8 = graph.matmul %x, %7 : (tensor<3x128xf32>, tensor<128x256xf32>) -> tensor<3x256xf32>
  return %8 : tensor<3x256xf32>
}

// A scale that differs along the rows.
// CHECK-LABEL: @rows
// CHECK-NOT: stored
// CHECK: return
func.func @rows(%x: tensor<3x128xf32>) -> tensor<3x256xf32> {
  %q = graph.constant dense<7> : tensor<128x256xi8>
  %s = graph.constant dense<0.5> : tensor<128x1xf32>
  %0 = graph.cast %q : (tensor<128x256xi8>) -> tensor<128x256xf32>
  %1 = graph.broadcast %s : (tensor<128x1xf32>) -> tensor<128x256xf32>
  %2 = graph.mul %1, %0 : tensor<128x256xf32>
  %3 = graph.matmul %x, %2 : (tensor<3x128xf32>, tensor<128x256xf32>) -> tensor<3x256xf32>
  return %3 : tensor<3x256xf32>
}

// CHECK-LABEL: @floats
// CHECK: graph.constant #graph.stored<codes = {{.*}} : tensor<128x256xbf16>> : tensor<1x128x256xf32>
func.func @floats(%x: tensor<5x3x128xf32>) -> tensor<5x3x256xf32> {
  %w = graph.constant dense<7.0> : tensor<128x256xbf16>
  %0 = graph.cast %w : (tensor<128x256xbf16>) -> tensor<128x256xf32>
  %1 = graph.reshape %0 : (tensor<128x256xf32>) -> tensor<1x128x256xf32>
  %2 = graph.matmul %x, %1 : (tensor<5x3x128xf32>, tensor<1x128x256xf32>) -> tensor<5x3x256xf32>
  return %2 : tensor<5x3x256xf32>
}

// Too small to be read from memory again and again.
// CHECK-LABEL: @small
// CHECK-NOT: stored
// CHECK: return
func.func @small(%x: tensor<3x8xf32>) -> tensor<3x256xf32> {
  %w = graph.constant dense<7.0> : tensor<8x256xbf16>
  %0 = graph.cast %w : (tensor<8x256xbf16>) -> tensor<8x256xf32>
  %1 = graph.matmul %x, %0 : (tensor<3x8xf32>, tensor<8x256xf32>) -> tensor<3x256xf32>
  return %1 : tensor<3x256xf32>
}
}
