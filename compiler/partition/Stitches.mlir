// Apollo's second layer: a product and the reductions over the rows of its result are one group.
// RUN: heddle-opt %s --heddle-partition="without=regions" | FileCheck %s
// RUN: heddle-opt %s --heddle-partition="without=regions refused=y:stitch" | FileCheck %s --check-prefix=REFUSED

module {
// CHECK-LABEL: @product_and_its_rows
// CHECK: graph.group "y" {mechanism = "stitch"}
// CHECK-NEXT: graph.matmul
// CHECK: graph.reduce_max
// CHECK: graph.exp
// CHECK-NOT: graph.group
// REFUSED-LABEL: @product_and_its_rows
// REFUSED: graph.group "product" {mechanism = "contraction"}
// REFUSED: graph.group "y" {mechanism = "rows"}
func.func @product_and_its_rows(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("product")
  %max = graph.reduce_max %product {axes = array<i64: 1>, keep_dims = true} : (tensor<4x16xf32>) -> tensor<4x1xf32>
  %maxes = graph.broadcast %max : (tensor<4x1xf32>) -> tensor<4x16xf32>
  %shifted = graph.sub %product, %maxes : tensor<4x16xf32>
  %y = graph.exp %shifted : tensor<4x16xf32> loc("y")
  return %y : tensor<4x16xf32>
}

// A residual that others read later is a second result.
// CHECK-LABEL: @a_second_result
// CHECK: graph.group "y" {mechanism = "stitch"} : tensor<4x1xf32>, tensor<4x16xf32>
// CHECK: graph.group "z" {mechanism = "pointwise"}
func.func @a_second_result(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<4x1xf32>, tensor<4x16xf32>) {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("product")
  %y = graph.reduce_max %product {axes = array<i64: 1>, keep_dims = true} : (tensor<4x16xf32>) -> tensor<4x1xf32> loc("y")
  %z = graph.exp %product : tensor<4x16xf32> loc("z")
  return %y, %z : tensor<4x1xf32>, tensor<4x16xf32>
}

// One that is read before the rows end would make a cycle.
// CHECK-LABEL: @read_before
// CHECK: graph.group "product" {mechanism = "contraction"}
// CHECK: graph.group "z" {mechanism = "contraction"}
// CHECK: graph.group "y" {mechanism = "rows"}
func.func @read_before(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %v: tensor<16x16xf32>) -> (tensor<4x16xf32>, tensor<4x1xf32>) {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("product")
  %z = graph.matmul %product, %v : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32> loc("z")
  %y = graph.reduce_max %product {axes = array<i64: 1>, keep_dims = true} : (tensor<4x16xf32>) -> tensor<4x1xf32> loc("y")
  return %z, %y : tensor<4x16xf32>, tensor<4x1xf32>
}

// Columns are no rows.
// CHECK-LABEL: @columns
// CHECK-NOT: "stitch"
func.func @columns(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<1x16xf32> {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("product")
  %y = graph.reduce_max %product {axes = array<i64: 0>, keep_dims = true} : (tensor<4x16xf32>) -> tensor<1x16xf32> loc("y")
  return %y : tensor<1x16xf32>
}
}
