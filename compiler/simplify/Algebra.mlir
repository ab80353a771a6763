// RUN: heddle-opt %s --heddle-simplify-algebra | FileCheck %s

module {
// CHECK-LABEL: @neutral_elements
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT: return %[[X]]
func.func @neutral_elements(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = graph.constant dense<0.0> : tensor<f32>
  %zero = graph.broadcast %0 : (tensor<f32>) -> tensor<2x3xf32>
  %one = graph.constant dense<1.0> : tensor<2x3xf32>
  %a = graph.add %zero, %x : tensor<2x3xf32>
  %b = graph.mul %a, %one : tensor<2x3xf32>
  %c = graph.sub %b, %zero : tensor<2x3xf32>
  %d = graph.div %c, %one : tensor<2x3xf32>
  %e = graph.pow %d, %one : tensor<2x3xf32>
  %f = graph.neg %e : tensor<2x3xf32>
  %g = graph.neg %f : tensor<2x3xf32>
  return %g : tensor<2x3xf32>
}

// NaN * 0 is NaN.
// CHECK-LABEL: @keeps_mul_zero
// CHECK: graph.mul
func.func @keeps_mul_zero(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = graph.constant dense<0.0> : tensor<2xf32>
  %y = graph.mul %x, %zero : tensor<2xf32>
  return %y : tensor<2xf32>
}

// CHECK-LABEL: @powers
// CHECK: graph.mul %[[X:.*]], %[[X]]
// CHECK: graph.sqrt
// CHECK-NOT: graph.pow
func.func @powers(%x: tensor<2xf32>) -> tensor<2xf32> {
  %two = graph.constant dense<2.0> : tensor<2xf32>
  %half = graph.constant dense<0.5> : tensor<2xf32>
  %a = graph.pow %x, %two : tensor<2xf32>
  %b = graph.pow %a, %half : tensor<2xf32>
  return %b : tensor<2xf32>
}

// (-inf)^0.5 is inf, sqrt(-inf) is NaN.
// CHECK-LABEL: @keeps_power_of_what_may_be_negative
// CHECK: graph.pow
func.func @keeps_power_of_what_may_be_negative(%x: tensor<2xf32>) -> tensor<2xf32> {
  %half = graph.constant dense<0.5> : tensor<2xf32>
  %b = graph.pow %x, %half : tensor<2xf32>
  return %b : tensor<2xf32>
}

// CHECK-LABEL: @merges_movement
// CHECK-NEXT: graph.reshape %{{.*}} : (tensor<2x3x4xf32>) -> tensor<24xf32>
// CHECK-NEXT: return
func.func @merges_movement(%x: tensor<2x3x4xf32>) -> tensor<24xf32> {
  %a = graph.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %b = graph.transpose %a {permutation = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  %c = graph.reshape %b : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %d = graph.reshape %c : (tensor<6x4xf32>) -> tensor<24xf32>
  return %d : tensor<24xf32>
}

// Where n is no 12, or no 4, the run refuses it.
// CHECK-LABEL: @keeps_movement_that_cannot_be
// CHECK: graph.reshape %{{.*}} -> tensor<?xf32
// CHECK: graph.reshape %{{.*}} -> tensor<6xf32>
// CHECK: graph.broadcast %{{.*}} -> tensor<2x?xf32
// CHECK: graph.broadcast %{{.*}} -> tensor<3x2x5xf32>
func.func @keeps_movement_that_cannot_be(%x: tensor<12xf32>, %z: tensor<4xf32>,
    %size: tensor<?xf32, #graph.dims<"n">>) -> (tensor<6xf32>, tensor<3x2x5xf32>) {
  %a = graph.reshape %x : (tensor<12xf32>) -> tensor<?xf32, #graph.dims<"n">>
  %b = graph.reshape %a : (tensor<?xf32, #graph.dims<"n">>) -> tensor<6xf32>
  %c = graph.broadcast %z : (tensor<4xf32>) -> tensor<2x?xf32, #graph.dims<2, "n">>
  %d = graph.broadcast %c : (tensor<2x?xf32, #graph.dims<2, "n">>) -> tensor<3x2x5xf32>
  return %b, %d : tensor<6xf32>, tensor<3x2x5xf32>
}

// CHECK-LABEL: @computes_once
// CHECK: graph.exp %{{.*}} : tensor<3x1xf32>
// CHECK: graph.mul %{{.*}} : tensor<3x1xf32>
// CHECK: graph.broadcast %{{.*}} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
func.func @computes_once(%x: tensor<3x1xf32>, %s: tensor<f32>) -> tensor<2x3x4xf32> {
  %a = graph.broadcast %x : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
  %b = graph.exp %a : tensor<2x3x4xf32>
  %c = graph.broadcast %s : (tensor<f32>) -> tensor<2x3x4xf32>
  %d = graph.mul %b, %c : tensor<2x3x4xf32>
  return %d : tensor<2x3x4xf32>
}

// CHECK-LABEL: @casts
// CHECK-SAME: (%[[X:.*]]: tensor<2xf16>, %[[Y:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[A:.*]] = graph.cast %[[Y]]
// CHECK-NEXT: %[[B:.*]] = graph.cast %[[A]]
// CHECK-NEXT: return %[[X]], %[[B]]
func.func @casts(%x: tensor<2xf16>, %y: tensor<2xf32>) -> (tensor<2xf16>, tensor<2xf32>) {
  %a = graph.cast %x : (tensor<2xf16>) -> tensor<2xf32>
  %b = graph.cast %a : (tensor<2xf32>) -> tensor<2xf16>
  %c = graph.cast %y : (tensor<2xf32>) -> tensor<2xf16>
  %d = graph.cast %c : (tensor<2xf16>) -> tensor<2xf32>
  return %b, %d : tensor<2xf16>, tensor<2xf32>
}

// Taps that meet the border alone, wherever the window is.
// CHECK-LABEL: @idle_taps
// CHECK: %[[W:.*]] = graph.slice {{.*}}starts = #graph.dims<0, 0, 1, 1>{{.*}} -> tensor<2x3x1x3xf32>
// CHECK: graph.conv %{{.*}}, %[[W]] {{.*}}high = array<i64: 0, 3>, low = array<i64: 0, 3>
func.func @idle_taps(%x: tensor<2x3x4x5xf32>) -> tensor<2x2x4x5xf32> {
  %w = graph.constant dense<1.0> : tensor<2x3x3x5xf32>
  %r = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 4, 3>,
      low = array<i64: 4, 6>, high = array<i64: 4, 6>}
      : (tensor<2x3x4x5xf32>, tensor<2x3x3x5xf32>) -> tensor<2x2x4x5xf32>
  return %r : tensor<2x2x4x5xf32>
}
}

// A mask is spread over the heads where it is read, not before a reshape.
// CHECK-LABEL: func.func @maskOfHeads
// CHECK: graph.matmul
// CHECK-NEXT: graph.reshape
// CHECK-NEXT: graph.select
// CHECK: graph.matmul
// CHECK-NEXT: graph.reshape
// CHECK-NEXT: graph.select
// CHECK-NOT: graph.reshape
func.func @maskOfHeads(%q: tensor<4x6x8xf32>, %k: tensor<4x8x5xf32>, %mask: tensor<1x2x5xi1>, %no: tensor<12x2x5xf32>) -> (tensor<12x2x5xf32>, tensor<12x2x5xf32>) {
  %spread = graph.broadcast %mask : (tensor<1x2x5xi1>) -> tensor<12x2x5xi1>
  %p = graph.matmul %q, %k : (tensor<4x6x8xf32>, tensor<4x8x5xf32>) -> tensor<4x6x5xf32>
  %scores = graph.reshape %p : (tensor<4x6x5xf32>) -> tensor<12x2x5xf32>
  %s = graph.select %spread, %scores, %no : (tensor<12x2x5xi1>, tensor<12x2x5xf32>, tensor<12x2x5xf32>) -> tensor<12x2x5xf32>
  %e = graph.exp %q : tensor<4x6x8xf32>
  %r = graph.matmul %e, %k : (tensor<4x6x8xf32>, tensor<4x8x5xf32>) -> tensor<4x6x5xf32>
  %others = graph.reshape %r : (tensor<4x6x5xf32>) -> tensor<12x2x5xf32>
  %t = graph.select %spread, %others, %no : (tensor<12x2x5xi1>, tensor<12x2x5xf32>, tensor<12x2x5xf32>) -> tensor<12x2x5xf32>
  return %s, %t : tensor<12x2x5xf32>, tensor<12x2x5xf32>
}
