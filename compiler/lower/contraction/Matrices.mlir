// Products of integers in registers that hold matrices: where the rows of their tiles lie.
// RUN: heddle-opt %s --split-input-file --heddle-plan="target=x86-64-amx" --heddle-lower="target=x86-64-amx" --canonicalize --cse | FileCheck %s

// Sixteen channels are a quarter of a step: the rest meets zeros of the panel, and rows are read
// where they are, 64 bytes a step, but for the last ones, which are copied.
// CHECK-LABEL: func.func private @kernel
// CHECK: program.multiply_matrices u8_i8 {{.*}}, %{{.*}}[%{{.*}}, 64, %{{.*}}]{{.*}} rows 32 columns 32
func.func @main(%x: tensor<1x16x16x16xui8>) -> tensor<1x16x16x64xi32> {
  %w = graph.constant dense<1> : tensor<64x16x1x1xi8>
  %y = graph.conv %x, %w {channels_last = true, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>}
      : (tensor<1x16x16x16xui8>, tensor<64x16x1x1xi8>) -> tensor<1x16x16x64xi32>
  return %y : tensor<1x16x16x64xi32>
}

// -----

// Three channels and few filters: rows of 9 bytes in a copy with borders, three pieces of them.
// CHECK-LABEL: func.func private @kernel
// CHECK-LABEL: func.func private @kernel
// CHECK: program.multiply_matrices u8_i8 {{.*}}, %{{.*}}[%{{.*}}, 64, %{{.*}}]{{.*}} rows 16 columns 16
func.func @main(%x: tensor<1x16x16x3xui8>) -> tensor<1x16x16x5xi32> {
  %w = graph.constant dense<1> : tensor<5x3x3x3xi8>
  %y = graph.conv %x, %w {channels_last = true, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 1, 1>, high = array<i64: 1, 1>}
      : (tensor<1x16x16x3xui8>, tensor<5x3x3x3xi8>) -> tensor<1x16x16x5xi32>
  return %y : tensor<1x16x16x5xi32>
}

// -----

// Taps that are apart in both directions are pieces of two kinds: each tile packs its rows.
// CHECK-LABEL: func.func private @kernel
// CHECK-LABEL: func.func private @kernel
// CHECK: program.multiply_matrices u8_i8 {{.*}}, %{{.*}}[%{{.*}}, 1024, %{{.*}}]{{.*}} rows 16 columns 16
func.func @main(%x: tensor<1x16x16x3xui8>) -> tensor<1x16x16x16xi32> {
  %w = graph.constant dense<1> : tensor<16x3x3x3xi8>
  %y = graph.conv %x, %w {channels_last = true, strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>,
      low = array<i64: 2, 2>, high = array<i64: 2, 2>}
      : (tensor<1x16x16x3xui8>, tensor<16x3x3x3xi8>) -> tensor<1x16x16x16xi32>
  return %y : tensor<1x16x16x16xi32>
}
