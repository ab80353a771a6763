// Results that nothing but products of bf16 reads, also through ops that keep the order of numbers,
// are stored as bf16.
// RUN: heddle-opt %s --split-input-file --heddle-short-results=target=x86-64-bf16 | FileCheck %s
// RUN: heddle-opt %s --split-input-file --heddle-short-results=target=x86-64-amx | FileCheck %s --check-prefix=AMX

// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = graph.group "a" {{.*}} : tensor<64x96xbf16>
// CHECK: %[[SUM:.*]] = graph.matmul %arg0
// CHECK: %[[CUT:.*]] = graph.max %[[SUM]]
// CHECK: %[[ROUNDED:.*]] = graph.cast %[[CUT]] {factor} : (tensor<64x96xf32>) -> tensor<64x96xbf16>
// CHECK: graph.yield %[[ROUNDED]]
// CHECK: %[[VIEW:.*]] = graph.reshape %[[A]] : (tensor<64x96xbf16>) -> tensor<8x8x96xbf16>
// CHECK: %[[T:.*]] = graph.group "t" {{.*}} : tensor<8x96x8xbf16>
// CHECK-NOT: graph.cast
// CHECK: graph.transpose %[[VIEW]] {{.*}} : (tensor<8x8x96xbf16>) -> tensor<8x96x8xbf16>
// CHECK: graph.group "b" {{.*}} : tensor<8x96x16xf32>
// CHECK: %[[WIDE:.*]] = graph.cast %[[T]] : (tensor<8x96x8xbf16>) -> tensor<8x96x8xf32>
// CHECK: graph.matmul %[[WIDE]]
func.func @main(%x: tensor<64x32xf32>) -> tensor<8x96x16xf32> {
  %first = graph.constant dense<1.0> : tensor<32x96xf32>
  %second = graph.constant dense<1.0> : tensor<1x8x16xf32>
  %zero = graph.constant dense<0.0> : tensor<64x96xf32>
  %a = graph.group "a" {mechanism = "contraction", precision = "bf16", schedule = {mechanism = "contraction"}} : tensor<64x96xf32> {
    %0 = graph.matmul %x, %first : (tensor<64x32xf32>, tensor<32x96xf32>) -> tensor<64x96xf32>
    %1 = graph.max %0, %zero : tensor<64x96xf32>
    graph.yield %1 : tensor<64x96xf32>
  }
  %view = graph.reshape %a : (tensor<64x96xf32>) -> tensor<8x8x96xf32>
  %t = graph.group "t" {mechanism = "pointwise", schedule = {mechanism = "pointwise"}} : tensor<8x96x8xf32> {
    %0 = graph.transpose %view {permutation = array<i64: 0, 2, 1>} : (tensor<8x8x96xf32>) -> tensor<8x96x8xf32>
    graph.yield %0 : tensor<8x96x8xf32>
  }
  %b = graph.group "b" {mechanism = "contraction", precision = "bf16", schedule = {mechanism = "contraction"}} : tensor<8x96x16xf32> {
    %0 = graph.matmul %t, %second : (tensor<8x96x8xf32>, tensor<1x8x16xf32>) -> tensor<8x96x16xf32>
    graph.yield %0 : tensor<8x96x16xf32>
  }
  return %b : tensor<8x96x16xf32>
}

// -----

// One that an exponential reads, too, one that the model returns, and one that a product of f32
// reads stay f32.
// CHECK-LABEL: func.func @main
// CHECK-NOT: xbf16>
func.func @main(%x: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %w = graph.constant dense<1.0> : tensor<32x32xf32>
  %a = graph.group "a" {mechanism = "contraction", precision = "bf16", schedule = {mechanism = "contraction"}} : tensor<64x32xf32> {
    %0 = graph.matmul %x, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
    graph.yield %0 : tensor<64x32xf32>
  }
  %b = graph.group "b" {mechanism = "contraction", precision = "bf16", schedule = {mechanism = "contraction"}} : tensor<64x32xf32> {
    %0 = graph.matmul %a, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
    %1 = graph.exp %a : tensor<64x32xf32>
    %2 = graph.add %0, %1 : tensor<64x32xf32>
    graph.yield %2 : tensor<64x32xf32>
  }
  %c = graph.group "c" {mechanism = "contraction", schedule = {mechanism = "contraction"}} : tensor<64x32xf32> {
    %0 = graph.matmul %b, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
    graph.yield %0 : tensor<64x32xf32>
  }
  %d = graph.group "d" {mechanism = "contraction", precision = "bf16", schedule = {mechanism = "contraction"}} : tensor<64x32xf32> {
    %0 = graph.matmul %c, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
    graph.yield %0 : tensor<64x32xf32>
  }
  return %c, %d : tensor<64x32xf32>, tensor<64x32xf32>
}

// -----

// An attention of open queries reads few of them, and their keys and values, as they are where
// others are multiplied in registers that hold matrices.
// CHECK-LABEL: func.func @main
// CHECK: graph.group "queries" {{.*}} : tensor<?x16xbf16
// AMX-LABEL: func.func @main
// AMX: graph.group "t"
// AMX-LABEL: func.func @main
// AMX-LABEL: func.func @main
// AMX: graph.group "queries" {{.*}} : tensor<?x16xf32
!q = tensor<?x16xf32, #graph.dims<"n", 16>>
!s = tensor<?x64xf32, #graph.dims<"n", 64>>
!r = tensor<?x1xf32, #graph.dims<"n", 1>>
func.func @main(%x: !q, %k: tensor<16x64xf32>, %v: tensor<64x16xf32>) -> !q {
  %w = graph.constant dense<1.0> : tensor<16x16xf32>
  %q = graph.group "queries" {mechanism = "contraction", precision = "bf16", schedule = {mechanism = "contraction"}} : !q {
    %0 = graph.matmul %x, %w : (!q, tensor<16x16xf32>) -> !q
    graph.yield %0 : !q
  }
  %g = graph.group "attention" {mechanism = "attention", precision = "bf16", schedule = {m = 32, mechanism = "attention", n = 32}} : !q {
    %l = graph.matmul %q, %k : (!q, tensor<16x64xf32>) -> !s
    %x1 = graph.reduce_max %l {axes = array<i64: 1>, keep_dims = true} : (!s) -> !r
    %xb = graph.broadcast %x1 : (!r) -> !s
    %m = graph.sub %l, %xb : !s
    %e = graph.exp %m : !s
    %t = graph.reduce_sum %e {axes = array<i64: 1>, keep_dims = true} : (!s) -> !r
    %tb = graph.broadcast %t : (!r) -> !s
    %p = graph.div %e, %tb : !s
    %o = graph.matmul %p, %v : (!s, tensor<64x16xf32>) -> !q
    graph.yield %o : !q
  }
  return %g : !q
}
