// Groups that walk the same elements or rows become one with several results (Apollo's rules
// elemwise-width and reduce-output).
// RUN: heddle-opt %s --heddle-partition="without=stitch,regions" | FileCheck %s
// RUN: heddle-opt %s --heddle-partition="without=stitch,regions refused=b:several" | FileCheck %s --check-prefix=REFUSED

module {
// CHECK-LABEL: @one_reads_the_other
// CHECK: graph.group "b" {mechanism = "pointwise"} : tensor<8x16xf32>, tensor<8x16xf32>
// CHECK-NOT: graph.group
// CHECK: graph.yield %[[B:.*]], %[[A:.*]] :
// REFUSED-LABEL: @one_reads_the_other
// REFUSED: graph.group "a"
// REFUSED: graph.group "b" {mechanism = "pointwise"} : tensor<8x16xf32> {
func.func @one_reads_the_other(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %a = graph.add %x, %y : tensor<8x16xf32> loc("a")
  %b = graph.mul %a, %y : tensor<8x16xf32> loc("b")
  return %a, %b : tensor<8x16xf32>, tensor<8x16xf32>
}

// CHECK-LABEL: @both_read_a_tensor
// CHECK: graph.group "b" {mechanism = "pointwise"} : tensor<8x16xf32>, tensor<8x16xf32>
func.func @both_read_a_tensor(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %a = graph.exp %x : tensor<8x16xf32> loc("a")
  %b = graph.add %x, %y : tensor<8x16xf32> loc("b")
  return %a, %b : tensor<8x16xf32>, tensor<8x16xf32>
}

// They have nothing in common.
// CHECK-LABEL: @strangers
// CHECK: graph.group "a"
// CHECK: graph.group "b"
func.func @strangers(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %a = graph.exp %x : tensor<8x16xf32> loc("a")
  %b = graph.exp %y : tensor<8x16xf32> loc("b")
  return %a, %b : tensor<8x16xf32>, tensor<8x16xf32>
}

// Reading a row of 16 numbers once more is no pass over the elements.
// CHECK-LABEL: @only_a_vector
// CHECK: graph.group "a"
// CHECK: graph.group "b"
func.func @only_a_vector(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %v: tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %v0 = graph.broadcast %v : (tensor<16xf32>) -> tensor<8x16xf32>
  %a = graph.add %x, %v0 : tensor<8x16xf32> loc("a")
  %v1 = graph.broadcast %v : (tensor<16xf32>) -> tensor<8x16xf32>
  %b = graph.add %y, %v1 : tensor<8x16xf32> loc("b")
  return %a, %b : tensor<8x16xf32>, tensor<8x16xf32>
}

// A new weight and two moments.
// CHECK-LABEL: @adam
// CHECK: %[[W:.*]]:3 = graph.group "w" {mechanism = "pointwise"} : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
// CHECK-NOT: graph.group
// CHECK: return %[[W]]#0, %[[W]]#1, %[[W]]#2
func.func @adam(%w: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %g: tensor<64xf32>, %rate: tensor<f32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %m1 = graph.add %m, %g : tensor<64xf32> loc("m")
  %square = graph.mul %g, %g : tensor<64xf32>
  %v1 = graph.add %v, %square : tensor<64xf32> loc("v")
  %root = graph.sqrt %v1 : tensor<64xf32>
  %step = graph.div %m1, %root : tensor<64xf32>
  %rates = graph.broadcast %rate : (tensor<f32>) -> tensor<64xf32>
  %scaled = graph.mul %step, %rates : tensor<64xf32>
  %w1 = graph.sub %w, %scaled : tensor<64xf32> loc("w")
  return %w1, %m1, %v1 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// What the reduction takes is stored by its kernel.
// CHECK-LABEL: @reduced_and_stored
// CHECK: graph.group "sum" {mechanism = "rows"} : tensor<32xf32>, tensor<32x64xf32>
func.func @reduced_and_stored(%x: tensor<32x64xf32>, %y: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32xf32>) {
  %a = graph.add %x, %y : tensor<32x64xf32> loc("a")
  %sum = graph.reduce_sum %a {axes = array<i64: 1>} : (tensor<32x64xf32>) -> tensor<32xf32> loc("sum")
  return %a, %sum : tensor<32x64xf32>, tensor<32xf32>
}

// Several reductions of the same rows, and a number for each row that follows from one of them.
// CHECK-LABEL: @reductions_of_rows
// CHECK: graph.group "last" {mechanism = "rows"} : tensor<32x1xf32>, tensor<32x1xf32>
// CHECK-NOT: graph.group
// CHECK: return
func.func @reductions_of_rows(%x: tensor<32x64xf32>) -> (tensor<32x1xf32>, tensor<32x1xf32>) {
  %max = graph.reduce_max %x {axes = array<i64: 1>, keep_dims = true} : (tensor<32x64xf32>) -> tensor<32x1xf32> loc("max")
  %sum = graph.reduce_sum %x {axes = array<i64: 1>, keep_dims = true} : (tensor<32x64xf32>) -> tensor<32x1xf32> loc("sum")
  %last = graph.sub %sum, %max : tensor<32x1xf32> loc("last")
  return %max, %last : tensor<32x1xf32>, tensor<32x1xf32>
}

// One long row would leave the workers without tasks that an elementwise group has.
// CHECK-LABEL: @one_row
// CHECK: graph.group "a" {mechanism = "pointwise"}
// CHECK: graph.group "sum" {mechanism = "rows"}
func.func @one_row(%x: tensor<1x65536xf32>, %y: tensor<1x65536xf32>) -> (tensor<1x65536xf32>, tensor<1xf32>) {
  %a = graph.add %x, %y : tensor<1x65536xf32> loc("a")
  %sum = graph.reduce_sum %a {axes = array<i64: 1>} : (tensor<1x65536xf32>) -> tensor<1xf32> loc("sum")
  return %a, %sum : tensor<1x65536xf32>, tensor<1xf32>
}

// What reads a part of the group and is read by nothing of it runs after it.
// CHECK-LABEL: @reader_in_between
// CHECK: graph.group "b" {mechanism = "pointwise"} : tensor<8x16xf32>, tensor<8x16xf32>
// CHECK: graph.group "turned"
func.func @reader_in_between(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<16x8xf32>, tensor<8x16xf32>) {
  %a = graph.add %x, %y : tensor<8x16xf32> loc("a")
  %turned = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32> loc("turned")
  %b = graph.mul %a, %y : tensor<8x16xf32> loc("b")
  return %turned, %b : tensor<16x8xf32>, tensor<8x16xf32>
}

// A path leads from a to b through the product: one group would close a cycle.
// CHECK-LABEL: @would_close_a_cycle
// CHECK: graph.group "a"
// CHECK: graph.group "product"
// CHECK: graph.group "b"
func.func @would_close_a_cycle(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %a = graph.add %x, %y : tensor<16x16xf32> loc("a")
  %product = graph.matmul %a, %y : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc("product")
  %turned = graph.transpose %product {permutation = array<i64: 1, 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32> loc("turned")
  %b = graph.mul %a, %turned : tensor<16x16xf32> loc("b")
  return %b : tensor<16x16xf32>
}

// Two reductions down the columns of what both read.
// CHECK-LABEL: @reductions_of_columns
// CHECK: graph.group "b" {mechanism = "pointwise"} : tensor<16xf32>, tensor<16xf32>
// CHECK-NOT: graph.group
// CHECK: return
func.func @reductions_of_columns(%x: tensor<64x16xf32>, %y: tensor<64x16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %product = graph.mul %x, %y : tensor<64x16xf32>
  %a = graph.reduce_sum %product {axes = array<i64: 0>} : (tensor<64x16xf32>) -> tensor<16xf32> loc("a")
  %b = graph.reduce_sum %y {axes = array<i64: 0>} : (tensor<64x16xf32>) -> tensor<16xf32> loc("b")
  return %a, %b : tensor<16xf32>, tensor<16xf32>
}

// One row that is long enough for pieces, which the kernel shares among workers.
// CHECK-LABEL: @least_and_largest_of_a_long_row
// CHECK: graph.group "b" {mechanism = "rows"} : tensor<f32>, tensor<f32>
// CHECK-NOT: graph.group
// CHECK: return
func.func @least_and_largest_of_a_long_row(%x: tensor<4194304xf32>) -> (tensor<f32>, tensor<f32>) {
  %a = graph.reduce_min %x {axes = array<i64: 0>} : (tensor<4194304xf32>) -> tensor<f32> loc("a")
  %b = graph.reduce_max %x {axes = array<i64: 0>} : (tensor<4194304xf32>) -> tensor<f32> loc("b")
  return %a, %b : tensor<f32>, tensor<f32>
}

// One row that no kernel shares: two kernels run beside each other.
// CHECK-LABEL: @least_and_largest_of_one_row
// CHECK: graph.group "a"
// CHECK: graph.group "b"
func.func @least_and_largest_of_one_row(%x: tensor<200000xf32>) -> (tensor<f32>, tensor<f32>) {
  %a = graph.reduce_min %x {axes = array<i64: 0>} : (tensor<200000xf32>) -> tensor<f32> loc("a")
  %b = graph.reduce_max %x {axes = array<i64: 0>} : (tensor<200000xf32>) -> tensor<f32> loc("b")
  return %a, %b : tensor<f32>, tensor<f32>
}

// The second one needs the whole of the first.
// CHECK-LABEL: @columns_one_after_the_other
// CHECK: graph.group "a"
// CHECK: graph.group "b"
func.func @columns_one_after_the_other(%x: tensor<64x16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %a = graph.reduce_sum %x {axes = array<i64: 0>} : (tensor<64x16xf32>) -> tensor<16xf32> loc("a")
  %wide = graph.broadcast %a : (tensor<16xf32>) -> tensor<64x16xf32>
  %moved = graph.sub %x, %wide : tensor<64x16xf32>
  %b = graph.reduce_sum %moved {axes = array<i64: 0>} : (tensor<64x16xf32>) -> tensor<16xf32> loc("b")
  return %a, %b : tensor<16xf32>, tensor<16xf32>
}
}
