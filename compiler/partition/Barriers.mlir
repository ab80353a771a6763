// What reads a claim between its ops moves after it, but nothing moves to the other side of an op
// that binds a size: types that name the size need not read the op.
// RUN: heddle-opt %s --heddle-partition="cards=true without=siblings,regions" | FileCheck %s

!q = tensor<2x8x4xf32>
!k = tensor<2x4x8xf32>
!s = tensor<2x8x8xf32>
!r = tensor<2x8x1xf32>
!found = tensor<3x?xi64, #graph.dims<3, "n">>
!n = tensor<?xi64, #graph.dims<"n">>
module {
// CHECK-LABEL: @moved
// CHECK: graph.group "dk" {mechanism = "attention_gradient"}
// CHECK: graph.group "least"
func.func @moved(%q: !q, %k: !q, %v: !q, %w: !q) -> (!q, !q, !q, !q, tensor<2x8x4xi64>) {
  %kt = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (!q) -> !k
  %scores = graph.matmul %q, %kt : (!q, !k) -> !s
  %max = graph.reduce_max %scores {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %maxes = graph.broadcast %max : (!r) -> !s
  %shifted = graph.sub %scores, %maxes : !s
  %power = graph.exp %shifted : !s
  %sum = graph.reduce_sum %power {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %sums = graph.broadcast %sum : (!r) -> !s
  %p = graph.div %power, %sums : !s loc("p")
  %y = graph.matmul %p, %v : (!s, !q) -> !q loc("y")
  %d = graph.mul %y, %w : !q
  %pt = graph.transpose %p {permutation = array<i64: 0, 2, 1>} : (!s) -> !s
  %dv = graph.matmul %pt, %d : (!s, !q) -> !q loc("dv")
  %least = graph.cast %dv : (!q) -> tensor<2x8x4xi64> loc("least")
  %vt = graph.transpose %v {permutation = array<i64: 0, 2, 1>} : (!q) -> !k
  %dp = graph.matmul %d, %vt : (!q, !k) -> !s
  %both = graph.mul %p, %dp : !s
  %whole = graph.reduce_sum %both {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %wholes = graph.broadcast %whole : (!r) -> !s
  %rest = graph.sub %dp, %wholes : !s
  %ds = graph.mul %p, %rest : !s
  %dq = graph.matmul %ds, %k : (!s, !q) -> !q loc("dq")
  %dst = graph.transpose %ds {permutation = array<i64: 0, 2, 1>} : (!s) -> !s
  %dk = graph.matmul %dst, %q : (!s, !q) -> !q loc("dk")
  return %y, %dv, %dq, %dk, %least : !q, !q, !q, !q, tensor<2x8x4xi64>
}

// CHECK-LABEL: @bound
// CHECK-NOT: attention_gradient
// CHECK: graph.nonzero
// CHECK-NOT: attention_gradient
// CHECK: graph.group "places"
// CHECK-NOT: attention_gradient
func.func @bound(%q: !q, %k: !q, %v: !q, %w: !q) -> (!q, !q, !q, !q, !found, !n) {
  %kt = graph.transpose %k {permutation = array<i64: 0, 2, 1>} : (!q) -> !k
  %scores = graph.matmul %q, %kt : (!q, !k) -> !s
  %max = graph.reduce_max %scores {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %maxes = graph.broadcast %max : (!r) -> !s
  %shifted = graph.sub %scores, %maxes : !s
  %power = graph.exp %shifted : !s
  %sum = graph.reduce_sum %power {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %sums = graph.broadcast %sum : (!r) -> !s
  %p = graph.div %power, %sums : !s loc("p")
  %y = graph.matmul %p, %v : (!s, !q) -> !q loc("y")
  %d = graph.mul %y, %w : !q
  %pt = graph.transpose %p {permutation = array<i64: 0, 2, 1>} : (!s) -> !s
  %dv = graph.matmul %pt, %d : (!s, !q) -> !q loc("dv")
  %mask = graph.cast %dv : (!q) -> tensor<2x8x4xi1> loc("mask")
  %found = graph.nonzero %mask : (tensor<2x8x4xi1>) -> !found
  %places = graph.iota {axis = 0 : i64} : () -> !n loc("places")
  %vt = graph.transpose %v {permutation = array<i64: 0, 2, 1>} : (!q) -> !k
  %dp = graph.matmul %d, %vt : (!q, !k) -> !s
  %both = graph.mul %p, %dp : !s
  %whole = graph.reduce_sum %both {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %wholes = graph.broadcast %whole : (!r) -> !s
  %rest = graph.sub %dp, %wholes : !s
  %ds = graph.mul %p, %rest : !s
  %dq = graph.matmul %ds, %k : (!s, !q) -> !q loc("dq")
  %dst = graph.transpose %ds {permutation = array<i64: 0, 2, 1>} : (!s) -> !s
  %dk = graph.matmul %dst, %q : (!s, !q) -> !q loc("dk")
  return %y, %dv, %dq, %dk, %found, %places : !q, !q, !q, !q, !found, !n
}
}
