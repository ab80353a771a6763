// Apollo's first layer: an op joins the group of its users if all of them are in one group, and the
// two fit one kernel. Each case is followed by a near miss.
// RUN: heddle-opt %s --heddle-partition="without=stitch,siblings,regions" | FileCheck %s

module {
// Elementwise ops and broadcasts.
// CHECK-LABEL: @elementwise
// CHECK: graph.group "y" {mechanism = "pointwise"}
// CHECK-NEXT: graph.broadcast
// CHECK-NEXT: graph.add
// CHECK-NEXT: graph.exp
// CHECK-NEXT: graph.yield
// CHECK-NOT: graph.group
func.func @elementwise(%x: tensor<4x8xf32>, %row: tensor<8xf32>) -> tensor<4x8xf32> {
  %wide = graph.broadcast %row : (tensor<8xf32>) -> tensor<4x8xf32>
  %sum = graph.add %x, %wide : tensor<4x8xf32>
  %y = graph.exp %sum : tensor<4x8xf32> loc("y")
  return %y : tensor<4x8xf32>
}

// What two groups read is stored, unless it is cheap to compute again (Recompute.mlir).
// CHECK-LABEL: @elementwise_read_twice
// CHECK: graph.group "shared" {mechanism = "pointwise"}
// CHECK: graph.group "a" {mechanism = "rows"}
// CHECK: graph.group "b" {mechanism = "pointwise"}
func.func @elementwise_read_twice(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %shared = graph.exp %x : tensor<4x8xf32> loc("shared")
  %a = graph.reduce_sum %shared {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32> loc("a")
  %b = graph.neg %shared : tensor<4x8xf32> loc("b")
  return %a, %b : tensor<4xf32>, tensor<4x8xf32>
}

// What is costly is computed before it is broadcast.
// CHECK-LABEL: @costly_before_a_broadcast
// CHECK: graph.group "e" {mechanism = "pointwise"} : tensor<1x8xf32>
// CHECK: graph.group "y" {mechanism = "pointwise"} : tensor<4x8xf32>
// CHECK-NEXT: graph.broadcast
func.func @costly_before_a_broadcast(%x: tensor<4x8xf32>, %row: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %e = graph.exp %row : tensor<1x8xf32> loc("e")
  %wide = graph.broadcast %e : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %y = graph.add %x, %wide : tensor<4x8xf32> loc("y")
  return %y : tensor<4x8xf32>
}

// Where parts of it are broadcast, too.
// CHECK-LABEL: @costly_before_a_part_is_broadcast
// CHECK: graph.group "e" {mechanism = "pointwise"} : tensor<1x8xf32>
// CHECK: graph.group "y" {mechanism = "pointwise"} : tensor<4x8xf32>
// CHECK-NEXT: graph.broadcast
func.func @costly_before_a_part_is_broadcast(%x: tensor<4x8xf32>, %row: tensor<1x9xf32>) -> tensor<4x8xf32> {
  %all = graph.exp %row : tensor<1x9xf32> loc("all")
  %e = graph.slice %all {starts = #graph.dims<0, 1>, steps = array<i64: 1, 1>} : (tensor<1x9xf32>) -> tensor<1x8xf32> loc("e")
  %wide = graph.broadcast %e : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %y = graph.add %x, %wide : tensor<4x8xf32> loc("y")
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: @cheap_before_a_broadcast
// CHECK: graph.group "y" {mechanism = "pointwise"} : tensor<4x8xf32>
// CHECK-NEXT: graph.neg
// CHECK-NOT: graph.group
func.func @cheap_before_a_broadcast(%x: tensor<4x8xf32>, %row: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %e = graph.neg %row : tensor<1x8xf32> loc("e")
  %wide = graph.broadcast %e : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %y = graph.add %x, %wide : tensor<4x8xf32> loc("y")
  return %y : tensor<4x8xf32>
}

// A product takes the elementwise ops that follow.
// CHECK-LABEL: @epilogue
// CHECK: graph.group "y" {mechanism = "contraction"}
// CHECK-NEXT: graph.matmul
// CHECK-NEXT: graph.broadcast
// CHECK-NEXT: graph.add
// CHECK-NEXT: graph.mul
// CHECK-NOT: graph.group
func.func @epilogue(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>,
                    %z: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %wide = graph.broadcast %b : (tensor<16xf32>) -> tensor<4x16xf32>
  %sum = graph.add %product, %wide : tensor<4x16xf32>
  %y = graph.mul %sum, %z : tensor<4x16xf32> loc("y")
  return %y : tensor<4x16xf32>
}

// What is stored at another place than it was computed at is no epilogue.
// CHECK-LABEL: @no_moved_epilogue
// CHECK: graph.group "product" {mechanism = "contraction"}
// CHECK-NEXT: graph.matmul
// CHECK: graph.group "y" {mechanism = "pointwise"}
// CHECK-NEXT: graph.transpose
func.func @no_moved_epilogue(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<16x4xf32> {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("product")
  %t = graph.transpose %product {permutation = array<i64: 1, 0>} : (tensor<4x16xf32>) -> tensor<16x4xf32>
  %y = graph.neg %t : tensor<16x4xf32> loc("y")
  return %y : tensor<16x4xf32>
}

// A product reads its operands from memory, often: what makes them is a group of its own.
// CHECK-LABEL: @no_prologue
// CHECK: graph.group "e" {mechanism = "pointwise"}
// CHECK: graph.group "product" {mechanism = "contraction"}
func.func @no_prologue(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %e = graph.neg %x : tensor<4x8xf32> loc("e")
  %product = graph.matmul %e, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("product")
  return %product : tensor<4x16xf32>
}

// But a transpose of the right operand, whose panels are packed in any case.
// CHECK-LABEL: @transposed_right_operand
// CHECK: graph.group "product" {mechanism = "contraction"}
// CHECK-NEXT: graph.transpose
// CHECK-NEXT: graph.matmul
// CHECK-NOT: graph.group
func.func @transposed_right_operand(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) -> tensor<4x16xf32> {
  %t = graph.transpose %w {permutation = array<i64: 1, 0>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %product = graph.matmul %x, %t : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("product")
  return %product : tensor<4x16xf32>
}

// Or of the left one, whose tiles are copied.
// CHECK-LABEL: @transposed_left_operand
// CHECK: graph.group "product" {mechanism = "contraction"}
// CHECK-NEXT: graph.transpose
// CHECK-NEXT: graph.matmul
// CHECK-NOT: graph.group
func.func @transposed_left_operand(%x: tensor<8x4xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32> loc("t")
  %product = graph.matmul %t, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("product")
  return %product : tensor<4x16xf32>
}

// What a broadcast repeats is read at indices as well as the broadcast would be.
// CHECK-LABEL: @gathered_broadcast
// CHECK: graph.group "y" {mechanism = "pointwise"}
// CHECK-NEXT: graph.broadcast
// CHECK-NEXT: graph.gather_elements
// CHECK-NOT: graph.group
func.func @gathered_broadcast(%x: tensor<8xf32>, %i: tensor<4x1xi64>) -> tensor<4x1xf32> {
  %wide = graph.broadcast %x : (tensor<8xf32>) -> tensor<4x8xf32>
  %y = graph.gather_elements %wide, %i {axis = 1} : (tensor<4x8xf32>, tensor<4x1xi64>) -> tensor<4x1xf32> loc("y")
  return %y : tensor<4x1xf32>
}

// Two products each read what it transposes.
// CHECK-LABEL: @transposed_for_two
// CHECK: graph.group "a" {mechanism = "contraction"}
// CHECK-NEXT: graph.transpose
// CHECK: graph.group "b" {mechanism = "contraction"}
// CHECK-NEXT: graph.transpose
// CHECK-NOT: graph.group
func.func @transposed_for_two(%x: tensor<8x4xf32>, %w: tensor<8x16xf32>, %v: tensor<5x4xf32>) -> (tensor<4x16xf32>, tensor<5x8xf32>) {
  %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32> loc("t")
  %a = graph.matmul %t, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("a")
  %b = graph.matmul %v, %t : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32> loc("b")
  return %a, %b : tensor<4x16xf32>, tensor<5x8xf32>
}

// Neither rows nor terms of the sum are side by side.
// CHECK-LABEL: @neither_side_by_side
// CHECK: graph.group "t" {mechanism = "pointwise"}
// CHECK: graph.group "product" {mechanism = "contraction"}
func.func @neither_side_by_side(%x: tensor<8x4x3xf32>, %w: tensor<3x8x16xf32>) -> tensor<3x4x16xf32> {
  %t = graph.transpose %x {permutation = array<i64: 2, 1, 0>} : (tensor<8x4x3xf32>) -> tensor<3x4x8xf32> loc("t")
  %product = graph.matmul %t, %w : (tensor<3x4x8xf32>, tensor<3x8x16xf32>) -> tensor<3x4x16xf32> loc("product")
  return %product : tensor<3x4x16xf32>
}

// Integers are copied in another form before.
// CHECK-LABEL: @transposed_integers
// CHECK: graph.group "t" {mechanism = "pointwise"}
// CHECK: graph.group "product" {mechanism = "contraction"}
func.func @transposed_integers(%x: tensor<8x4xi8>, %w: tensor<8x16xi8>) -> tensor<4x16xi32> {
  %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x4xi8>) -> tensor<4x8xi8> loc("t")
  %product = graph.matmul %t, %w : (tensor<4x8xi8>, tensor<8x16xi8>) -> tensor<4x16xi32> loc("product")
  return %product : tensor<4x16xi32>
}

// Reductions over the rows of one shape, with everything around them.
// CHECK-LABEL: @rows
// CHECK: graph.group "y" {mechanism = "rows"}
// CHECK: graph.reduce_max
// CHECK: graph.reduce_sum
// CHECK-NOT: graph.group
func.func @rows(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %max = graph.reduce_max %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %maxes = graph.broadcast %max : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %shifted = graph.sub %x, %maxes : tensor<4x8xf32>
  %power = graph.exp %shifted : tensor<4x8xf32>
  %sum = graph.reduce_sum %power {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %sums = graph.broadcast %sum : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %y = graph.div %power, %sums : tensor<4x8xf32> loc("y")
  return %y : tensor<4x8xf32>
}

// A sum over other axes is no row of them.
// CHECK-LABEL: @rows_and_columns
// CHECK: graph.group "max" {mechanism = "pointwise"} : tensor<1x8xf32>
// CHECK: graph.group "y" {mechanism = "rows"}
// CHECK-NOT: graph.reduce_max
func.func @rows_and_columns(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %max = graph.reduce_max %x {axes = array<i64: 0>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<1x8xf32> loc("max")
  %maxes = graph.broadcast %max : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %shifted = graph.sub %x, %maxes : tensor<4x8xf32>
  %y = graph.reduce_sum %shifted {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32> loc("y")
  return %y : tensor<4x1xf32>
}

// A pool takes its epilogue.
// CHECK-LABEL: @window
// CHECK: graph.group "pool" {mechanism = "window"}
// CHECK-NEXT: graph.pool
// CHECK-NEXT: graph.neg
func.func @window(%x: tensor<1x8x8x4xf32>) -> tensor<1x7x7x4xf32> {
  %max = graph.pool %x {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>, channels_last = true} : (tensor<1x8x8x4xf32>) -> tensor<1x7x7x4xf32>
  %y = graph.neg %max : tensor<1x7x7x4xf32> loc("pool")
  return %y : tensor<1x7x7x4xf32>
}

// A scatter stores the number that its result begins with.
// CHECK-LABEL: @onto_zeros
// CHECK: graph.group "s" {mechanism = "serial"}
// CHECK-NEXT: graph.broadcast
// CHECK-NEXT: graph.scatter_nd
func.func @onto_zeros(%i: tensor<2x1xi64>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %x = graph.broadcast %zero : (tensor<f32>) -> tensor<4xf32>
  %s = graph.scatter_nd %x, %i, %u : (tensor<4xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<4xf32> loc("s")
  return %s : tensor<4xf32>
}

// A scatter is alone otherwise.
// CHECK-LABEL: @serial
// CHECK: graph.group "e" {mechanism = "pointwise"}
// CHECK: graph.group "s" {mechanism = "serial"}
// CHECK: graph.group "y" {mechanism = "pointwise"}
func.func @serial(%x: tensor<4xf32>, %i: tensor<2x1xi64>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %e = graph.neg %u : tensor<2xf32> loc("e")
  %s = graph.scatter_nd %x, %i, %e : (tensor<4xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<4xf32> loc("s")
  %y = graph.neg %s : tensor<4xf32> loc("y")
  return %y : tensor<4xf32>
}

// A view is in no group.
// CHECK-LABEL: @view
// CHECK: graph.group "e"
// CHECK: graph.reshape
// CHECK: graph.group "y"
func.func @view(%x: tensor<4x6xf32>) -> tensor<8x3xf32> {
  %e = graph.exp %x : tensor<4x6xf32> loc("e")
  %v = graph.reshape %e : (tensor<4x6xf32>) -> tensor<8x3xf32>
  %y = graph.neg %v : tensor<8x3xf32> loc("y")
  return %y : tensor<8x3xf32>
}
}
