// Subgraphs that the nest of a card claims are grown op by op (PluS, algorithms 1 and 2).
// RUN: heddle-opt %s --heddle-partition="cards=true without=stitch,siblings,regions" | FileCheck %s
// RUN: heddle-opt %s --heddle-partition="cards=true without=stitch,siblings,regions refused=y:attention" | FileCheck %s --check-prefix=REFUSED
// RUN: heddle-opt %s --heddle-partition="cards=true without=stitch,siblings,regions refused=dk:attention_gradient" | FileCheck %s --check-prefix=GRADIENT

!q = tensor<2x8x4xf32>
!k = tensor<2x4x8xf32>
!s = tensor<2x8x8xf32>
!r = tensor<2x8x1xf32>
module {
// CHECK-LABEL: @attention
// CHECK: graph.group "y" {mechanism = "attention"}
// CHECK-COUNT-2: graph.matmul
// CHECK-NOT: graph.group
// REFUSED-LABEL: @attention
// REFUSED: graph.group "scores" {mechanism = "contraction"}
// REFUSED: graph.group "p" {mechanism = "rows"}
// REFUSED: graph.group "y" {mechanism = "contraction"}
func.func @attention(%q: !q, %k: !k, %v: !q, %scale: tensor<f32>) -> !q {
  %product = graph.matmul %q, %k : (!q, !k) -> !s
  %scales = graph.broadcast %scale : (tensor<f32>) -> !s
  %scores = graph.mul %product, %scales : !s loc("scores")
  %max = graph.reduce_max %scores {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %maxes = graph.broadcast %max : (!r) -> !s
  %shifted = graph.sub %scores, %maxes : !s
  %power = graph.exp %shifted : !s
  %sum = graph.reduce_sum %power {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %sums = graph.broadcast %sum : (!r) -> !s
  %p = graph.div %power, %sums : !s loc("p")
  %y = graph.matmul %p, %v : (!s, !q) -> !q loc("y")
  return %y : !q
}

// What can be the epilogue of another product is given back; so is the view at the rim.
// CHECK-LABEL: @given_back
// CHECK: graph.group "q" {mechanism = "contraction"}
// CHECK: graph.group "y" {mechanism = "attention"}
// CHECK: graph.reshape
// CHECK-NOT: graph.group
func.func @given_back(%x: !q, %w: tensor<2x4x4xf32>, %b: !q, %k: !k, %v: !q) -> tensor<16x4xf32> {
  %projected = graph.matmul %x, %w : (!q, tensor<2x4x4xf32>) -> !q
  %q = graph.add %projected, %b : !q loc("q")
  %scores = graph.matmul %q, %k : (!q, !k) -> !s loc("scores")
  %max = graph.reduce_max %scores {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %maxes = graph.broadcast %max : (!r) -> !s
  %shifted = graph.sub %scores, %maxes : !s
  %power = graph.exp %shifted : !s
  %sum = graph.reduce_sum %power {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %sums = graph.broadcast %sum : (!r) -> !s
  %p = graph.div %power, %sums : !s
  %y = graph.matmul %p, %v : (!s, !q) -> !q loc("y")
  %view = graph.reshape %y : (!q) -> tensor<16x4xf32>
  return %view : tensor<16x4xf32>
}

// Without the row's sum it is no softmax.
// CHECK-LABEL: @no_softmax
// CHECK-NOT: "attention"
func.func @no_softmax(%q: !q, %k: !k, %v: !q) -> !q {
  %scores = graph.matmul %q, %k : (!q, !k) -> !s
  %power = graph.exp %scores : !s
  %y = graph.matmul %power, %v : (!s, !q) -> !q loc("y")
  return %y : !q
}

// Others read the probabilities, so they have to be stored.
// CHECK-LABEL: @read_elsewhere
// CHECK-NOT: "attention"
func.func @read_elsewhere(%q: !q, %k: !k, %v: !q) -> (!q, !s) {
  %scores = graph.matmul %q, %k : (!q, !k) -> !s
  %max = graph.reduce_max %scores {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %maxes = graph.broadcast %max : (!r) -> !s
  %shifted = graph.sub %scores, %maxes : !s
  %power = graph.exp %shifted : !s
  %sum = graph.reduce_sum %power {axes = array<i64: 2>, keep_dims = true} : (!s) -> !r
  %sums = graph.broadcast %sum : (!r) -> !s
  %p = graph.div %power, %sums : !s
  %y = graph.matmul %p, %v : (!s, !q) -> !q
  return %y, %p : !q, !s
}

// What the gradient reads of the softmax it computes again, so that nobody stores it; where it
// must not, both read the same one.
// CHECK-LABEL: @gradient
// CHECK: graph.group "y" {mechanism = "attention"}
// CHECK: %[[g:.*]]:3 = graph.group "dk" {mechanism = "attention_gradient"} : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
// CHECK-COUNT-5: graph.matmul
// CHECK-NOT: graph.group
// GRADIENT-LABEL: @gradient
// GRADIENT: graph.group "p" {mechanism = "rows"}
// GRADIENT: graph.group "y" {mechanism = "contraction"}
// GRADIENT: graph.group "dv" {mechanism = "contraction"}
// GRADIENT-NOT: graph.exp
func.func @gradient(%q: !q, %k: !q, %v: !q, %w: !q) -> (!q, !q, !q, !q) {
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
  return %y, %dv, %dq, %dk : !q, !q, !q, !q
}
}
