// Cards and knobs by the rules, and the feedback: a group that cannot be carried out, or that does
// not pay, is split.
// RUN: heddle-opt %s --split-input-file --heddle-plan | FileCheck %s
// RUN: heddle-opt %s --split-input-file --heddle-plan="target=x86-64-v4" | FileCheck %s --check-prefix=WIDE
// RUN: heddle-opt %s --split-input-file --heddle-plan="without=feedback" | FileCheck %s --check-prefix=STAYS

// Register tiles of the target's vectors.
// CHECK-LABEL: @main
// CHECK: graph.group "y" {card = "matmul", {{.*}} schedule = {m = 6 : i64, mechanism = "contraction", n = 16 : i64
// STAYS-LABEL: @main
// WIDE-LABEL: @main
// WIDE: graph.group "y" {card = "matmul", {{.*}} schedule = {m = 8 : i64, mechanism = "contraction", n = 48 : i64
func.func @main(%x: tensor<56x64xf32>) -> tensor<56x96xf32> {
  %w = graph.constant dense<1.0> : tensor<64x96xf32>
  %y = graph.matmul %x, %w : (tensor<56x64xf32>, tensor<64x96xf32>) -> tensor<56x96xf32> loc("y")
  return %y : tensor<56x96xf32>
}

// -----

// The rows of this product do not fit the L2, so the reduction is a group of its own.
// CHECK-LABEL: @main
// CHECK: graph.group "product" {card = "matmul"
// CHECK: graph.group "y" {card = "reduce_rows"
// STAYS-LABEL: @main
// STAYS: graph.group "y" {{.*}} mechanism = "stitch"
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x1xf32> {
  %w = graph.constant dense<1.0> : tensor<64x300000xf32>
  %product = graph.matmul %x, %w : (tensor<64x64xf32>, tensor<64x300000xf32>) -> tensor<64x300000xf32> loc("product")
  %y = graph.reduce_max %product {axes = array<i64: 1>, keep_dims = true} : (tensor<64x300000xf32>) -> tensor<64x1xf32> loc("y")
  return %y : tensor<64x1xf32>
}

// -----

// The right operand leaves the L2, and would pass it once for every few rows.
// CHECK-LABEL: @main
// CHECK: graph.group "product" {card = "matmul"
// CHECK: graph.group "y" {card = "reduce_rows"
// STAYS-LABEL: @main
// STAYS: graph.group "y" {{.*}} mechanism = "stitch"
func.func @main(%x: tensor<700x400xf32>, %w: tensor<400x2000xf32>) -> tensor<700x1xf32> {
  %product = graph.matmul %x, %w : (tensor<700x400xf32>, tensor<400x2000xf32>) -> tensor<700x2000xf32> loc("product")
  %y = graph.reduce_max %product {axes = array<i64: 1>, keep_dims = true} : (tensor<700x2000xf32>) -> tensor<700x1xf32> loc("y")
  return %y : tensor<700x1xf32>
}

// -----

// This one stays there.
// CHECK-LABEL: @main
// CHECK: graph.group "y" {card = "matmul_rows"
func.func @main(%x: tensor<700x8xf32>, %w: tensor<8x2000xf32>) -> tensor<700x1xf32> {
  %product = graph.matmul %x, %w : (tensor<700x8xf32>, tensor<8x2000xf32>) -> tensor<700x2000xf32> loc("product")
  %y = graph.reduce_max %product {axes = array<i64: 1>, keep_dims = true} : (tensor<700x2000xf32>) -> tensor<700x1xf32> loc("y")
  return %y : tensor<700x1xf32>
}

// -----

// What is refused is the stitch alone: the row is still walked once.
// CHECK-LABEL: @main
// CHECK: graph.group "product" {card = "matmul"
// CHECK: graph.group "y" {card = "reduce_rows"
// CHECK-NOT: graph.group
func.func @main(%x: tensor<700x400xf32>, %w: tensor<400x2000xf32>) -> (tensor<700x2000xf32>, tensor<700x1xf32>, tensor<700x1xf32>) {
  %product = graph.matmul %x, %w : (tensor<700x400xf32>, tensor<400x2000xf32>) -> tensor<700x2000xf32> loc("product")
  %max = graph.reduce_max %product {axes = array<i64: 1>, keep_dims = true} : (tensor<700x2000xf32>) -> tensor<700x1xf32> loc("y")
  %wide = graph.broadcast %max : (tensor<700x1xf32>) -> tensor<700x2000xf32> loc("y")
  %less = graph.sub %product, %wide : tensor<700x2000xf32> loc("y")
  %sum = graph.reduce_sum %less {axes = array<i64: 1>, keep_dims = true} : (tensor<700x2000xf32>) -> tensor<700x1xf32> loc("y")
  return %product, %max, %sum : tensor<700x2000xf32>, tensor<700x1xf32>, tensor<700x1xf32>
}
