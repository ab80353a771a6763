// RUN: heddle-opt %s --heddle-simplify-fold --heddle-simplify-quantized --heddle-simplify-fold | FileCheck %s

module {
// The zero point of b goes into its constant; that of a is a constant shift of each column.
// CHECK-LABEL: @matmul
// CHECK: %[[B:.*]] = graph.constant dense<{{\[\[}}1, -2], [3, -4]]> : tensor<2x2xi8>
// CHECK: %[[M:.*]] = graph.matmul %arg0, %[[B]] : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
// CHECK: %[[S:.*]] = graph.constant dense<{{\[\[}}40, -60]]> : tensor<1x2xi32>
// CHECK: %[[W:.*]] = graph.broadcast %[[S]]
// CHECK: graph.sub %[[M]], %[[W]]
func.func @matmul(%a: tensor<3x2xui8>) -> tensor<3x2xi32> {
  %b = graph.constant dense<[[101, 98], [103, 96]]> : tensor<2x2xui8>
  %za = graph.constant dense<10> : tensor<i32>
  %zb = graph.constant dense<100> : tensor<i32>
  %0 = graph.cast %a : (tensor<3x2xui8>) -> tensor<3x2xi32>
  %1 = graph.broadcast %za : (tensor<i32>) -> tensor<3x2xi32>
  %2 = graph.sub %0, %1 : tensor<3x2xi32>
  %3 = graph.cast %b : (tensor<2x2xui8>) -> tensor<2x2xi32>
  %4 = graph.broadcast %zb : (tensor<i32>) -> tensor<2x2xi32>
  %5 = graph.sub %3, %4 : tensor<2x2xi32>
  %6 = graph.matmul %2, %5 : (tensor<3x2xi32>, tensor<2x2xi32>) -> tensor<3x2xi32>
  return %6 : tensor<3x2xi32>
}

// Of two arguments, both zero points meet sums that the run makes.
// CHECK-LABEL: @two_arguments
// CHECK: %[[M:.*]] = graph.matmul %arg0, %arg1 : (tensor<3x2xi8>, tensor<2x4xi8>) -> tensor<3x4xi32>
// CHECK: graph.reduce_sum
// CHECK: graph.sub %[[M]]
// CHECK: graph.reduce_sum
// CHECK: graph.sub
func.func @two_arguments(%a: tensor<3x2xi8>, %b: tensor<2x4xi8>, %za: tensor<i32>,
                         %zb: tensor<4xi32>) -> tensor<3x4xi32> {
  %0 = graph.cast %a : (tensor<3x2xi8>) -> tensor<3x2xi32>
  %1 = graph.broadcast %za : (tensor<i32>) -> tensor<3x2xi32>
  %2 = graph.sub %0, %1 : tensor<3x2xi32>
  %3 = graph.cast %b : (tensor<2x4xi8>) -> tensor<2x4xi32>
  %4 = graph.broadcast %zb : (tensor<4xi32>) -> tensor<2x4xi32>
  %5 = graph.sub %3, %4 : tensor<2x4xi32>
  %6 = graph.matmul %2, %5 : (tensor<3x2xi32>, tensor<2x4xi32>) -> tensor<3x4xi32>
  return %6 : tensor<3x4xi32>
}

// A border stands for the zero point, not for 0.
// CHECK-LABEL: @border
// CHECK: %[[P:.*]] = graph.pad %arg0
// CHECK: graph.conv %[[P]], %{{.*}} {{.*}}high = array<i64: 0>{{.*}}low = array<i64: 0>
// CHECK-SAME: (tensor<1x1x6xui8>, tensor<1x1x3xi8>) -> tensor<1x1x4xi32>
// CHECK: graph.sub
func.func @border(%x: tensor<1x1x4xui8>) -> tensor<1x1x4xi32> {
  %w = graph.constant dense<[[[1, 2, 3]]]> : tensor<1x1x3xi32>
  %z = graph.constant dense<7> : tensor<i32>
  %0 = graph.cast %x : (tensor<1x1x4xui8>) -> tensor<1x1x4xi32>
  %1 = graph.broadcast %z : (tensor<i32>) -> tensor<1x1x4xi32>
  %2 = graph.sub %0, %1 : tensor<1x1x4xi32>
  %3 = graph.conv %2, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 1>,
      high = array<i64: 1>} : (tensor<1x1x4xi32>, tensor<1x1x3xi32>) -> tensor<1x1x4xi32>
  return %3 : tensor<1x1x4xi32>
}

// i32 operands of which nothing is known stay.
// CHECK-LABEL: @leaves_wide
// CHECK: graph.matmul %arg0, %arg1 : (tensor<3x2xi32>
func.func @leaves_wide(%a: tensor<3x2xi32>, %b: tensor<2x2xi32>) -> tensor<3x2xi32> {
  %0 = graph.matmul %a, %b : (tensor<3x2xi32>, tensor<2x2xi32>) -> tensor<3x2xi32>
  return %0 : tensor<3x2xi32>
}

// The weights of a channel each have their scale; they were turned after they were read.
// CHECK-LABEL: @dequantised
// CHECK: %[[M:.*]] = graph.matmul %arg0, %{{.*}} : (tensor<3x2xi8>, tensor<2x4xi8>) -> tensor<3x4xi32>
// CHECK: %[[F:.*]] = graph.cast %[[M]] : (tensor<3x4xi32>) -> tensor<3x4xf32>
// CHECK: graph.mul %[[F]]
func.func @dequantised(%a: tensor<3x2xi8>, %b: tensor<4x2xi8>, %sb: tensor<4x1xf32>)
    -> tensor<3x4xf32> {
  %sa = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.cast %a : (tensor<3x2xi8>) -> tensor<3x2xi32>
  %1 = graph.cast %0 : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %2 = graph.broadcast %sa : (tensor<f32>) -> tensor<3x2xf32>
  %3 = graph.mul %1, %2 : tensor<3x2xf32>
  %4 = graph.cast %b : (tensor<4x2xi8>) -> tensor<4x2xi32>
  %5 = graph.cast %4 : (tensor<4x2xi32>) -> tensor<4x2xf32>
  %6 = graph.broadcast %sb : (tensor<4x1xf32>) -> tensor<4x2xf32>
  %7 = graph.mul %5, %6 : tensor<4x2xf32>
  %8 = graph.transpose %7 {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %9 = graph.matmul %3, %8 : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return %9 : tensor<3x4xf32>
}

// A scale along the reduction is no factor of the sum.
// CHECK-LABEL: @leaves_scales_of_the_reduction
// CHECK: graph.matmul {{.*}} : (tensor<3x2xf32>
func.func @leaves_scales_of_the_reduction(%a: tensor<3x2xi8>, %b: tensor<2x4xi8>,
                                          %sb: tensor<2x1xf32>) -> tensor<3x4xf32> {
  %sa = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.cast %a : (tensor<3x2xi8>) -> tensor<3x2xf32>
  %1 = graph.broadcast %sa : (tensor<f32>) -> tensor<3x2xf32>
  %2 = graph.mul %0, %1 : tensor<3x2xf32>
  %3 = graph.cast %b : (tensor<2x4xi8>) -> tensor<2x4xf32>
  %4 = graph.broadcast %sb : (tensor<2x1xf32>) -> tensor<2x4xf32>
  %5 = graph.mul %3, %4 : tensor<2x4xf32>
  %6 = graph.matmul %2, %5 : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return %6 : tensor<3x4xf32>
}

// After a dequantised sum no division is left.
// CHECK-LABEL: @requantised
// CHECK-DAG: graph.constant dense<2.500000e-01>
// CHECK-DAG: graph.constant dense<2.000000e+00>
// CHECK-NOT: graph.div
// CHECK: return
func.func @requantised(%s: tensor<3x4xi32>) -> tensor<3x4xf32> {
  %scale = graph.constant dense<0.5> : tensor<f32>
  %bias = graph.constant dense<4.0> : tensor<f32>
  %step = graph.constant dense<2.0> : tensor<f32>
  %0 = graph.cast %s : (tensor<3x4xi32>) -> tensor<3x4xf32>
  %1 = graph.broadcast %scale : (tensor<f32>) -> tensor<3x4xf32>
  %2 = graph.mul %0, %1 : tensor<3x4xf32>
  %3 = graph.broadcast %bias : (tensor<f32>) -> tensor<3x4xf32>
  %4 = graph.add %2, %3 : tensor<3x4xf32>
  %5 = graph.broadcast %step : (tensor<f32>) -> tensor<3x4xf32>
  %6 = graph.div %4, %5 : tensor<3x4xf32>
  return %6 : tensor<3x4xf32>
}

// The largest element is the same before and after; then both sides of the pair are gone.
// CHECK-LABEL: @pooled
// CHECK: %[[P:.*]] = graph.pool %arg0 {{.*}} : (tensor<1x1x4xi8>) -> tensor<1x1x3xi8>
// CHECK: return %[[P]]
func.func @pooled(%x: tensor<1x1x4xi8>) -> tensor<1x1x3xi8> {
  %s = graph.constant dense<0.3> : tensor<f32>
  %z = graph.constant dense<-7.0> : tensor<f32>
  %zi = graph.constant dense<-7> : tensor<i32>
  %low = graph.constant dense<-128.0> : tensor<f32>
  %high = graph.constant dense<127.0> : tensor<f32>
  %0 = graph.cast %x : (tensor<1x1x4xi8>) -> tensor<1x1x4xi32>
  %1 = graph.broadcast %zi : (tensor<i32>) -> tensor<1x1x4xi32>
  %2 = graph.sub %0, %1 : tensor<1x1x4xi32>
  %3 = graph.cast %2 : (tensor<1x1x4xi32>) -> tensor<1x1x4xf32>
  %4 = graph.broadcast %s : (tensor<f32>) -> tensor<1x1x4xf32>
  %5 = graph.mul %3, %4 : tensor<1x1x4xf32>
  %6 = graph.pool %5 {kind = "max", window = array<i64: 2>, strides = array<i64: 1>,
      dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>}
      : (tensor<1x1x4xf32>) -> tensor<1x1x3xf32>
  %7 = graph.broadcast %s : (tensor<f32>) -> tensor<1x1x3xf32>
  %8 = graph.div %6, %7 : tensor<1x1x3xf32>
  %9 = graph.round %8 : tensor<1x1x3xf32>
  %10 = graph.broadcast %z : (tensor<f32>) -> tensor<1x1x3xf32>
  %11 = graph.add %9, %10 : tensor<1x1x3xf32>
  %12 = graph.broadcast %low : (tensor<f32>) -> tensor<1x1x3xf32>
  %13 = graph.max %11, %12 : tensor<1x1x3xf32>
  %14 = graph.broadcast %high : (tensor<f32>) -> tensor<1x1x3xf32>
  %15 = graph.min %13, %14 : tensor<1x1x3xf32>
  %16 = graph.cast %15 : (tensor<1x1x3xf32>) -> tensor<1x1x3xi8>
  return %16 : tensor<1x1x3xi8>
}

// A last window that begins up to a stride later still meets the image, where it is wider than that.
// CHECK-LABEL: @pooled_up
// CHECK: %[[P:.*]] = graph.pool %arg0 {{.*}} : (tensor<1x1x4xi8>) -> tensor<1x1x2xi8>
// CHECK: return %[[P]]
func.func @pooled_up(%x: tensor<1x1x4xi8>) -> tensor<1x1x2xi8> {
  %s = graph.constant dense<0.3> : tensor<f32>
  %z = graph.constant dense<-7.0> : tensor<f32>
  %zi = graph.constant dense<-7> : tensor<i32>
  %low = graph.constant dense<-128.0> : tensor<f32>
  %high = graph.constant dense<127.0> : tensor<f32>
  %0 = graph.cast %x : (tensor<1x1x4xi8>) -> tensor<1x1x4xi32>
  %1 = graph.broadcast %zi : (tensor<i32>) -> tensor<1x1x4xi32>
  %2 = graph.sub %0, %1 : tensor<1x1x4xi32>
  %3 = graph.cast %2 : (tensor<1x1x4xi32>) -> tensor<1x1x4xf32>
  %4 = graph.broadcast %s : (tensor<f32>) -> tensor<1x1x4xf32>
  %5 = graph.mul %3, %4 : tensor<1x1x4xf32>
  %6 = graph.pool %5 {kind = "max", window = array<i64: 3>, strides = array<i64: 2>, ceil_mode = true,
      dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>}
      : (tensor<1x1x4xf32>) -> tensor<1x1x2xf32>
  %7 = graph.broadcast %s : (tensor<f32>) -> tensor<1x1x2xf32>
  %8 = graph.div %6, %7 : tensor<1x1x2xf32>
  %9 = graph.round %8 : tensor<1x1x2xf32>
  %10 = graph.broadcast %z : (tensor<f32>) -> tensor<1x1x2xf32>
  %11 = graph.add %9, %10 : tensor<1x1x2xf32>
  %12 = graph.broadcast %low : (tensor<f32>) -> tensor<1x1x2xf32>
  %13 = graph.max %11, %12 : tensor<1x1x2xf32>
  %14 = graph.broadcast %high : (tensor<f32>) -> tensor<1x1x2xf32>
  %15 = graph.min %13, %14 : tensor<1x1x2xf32>
  %16 = graph.cast %15 : (tensor<1x1x2xf32>) -> tensor<1x1x2xi8>
  return %16 : tensor<1x1x2xi8>
}
}
