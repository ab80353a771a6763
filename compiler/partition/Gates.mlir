// A product that is read in equal parts of its columns, and what follows from those elementwise, are
// one group: the parts of one element meet in registers.
// RUN: heddle-opt %s --heddle-partition="without=stitch,siblings,regions" | FileCheck %s
// RUN: heddle-opt %s --heddle-partition="without=stitch,siblings,regions refused=y:gates" | FileCheck %s --check-prefix=REFUSED

module {
// A gated linear unit.
// CHECK-LABEL: @gated
// CHECK: graph.group "y" {mechanism = "contraction"}
// CHECK-NEXT: graph.matmul
// CHECK-COUNT-2: graph.slice
// CHECK: graph.mul
// CHECK-NOT: graph.group
// REFUSED-LABEL: @gated
// REFUSED: graph.group "product" {mechanism = "contraction"}
// REFUSED: graph.group "y" {mechanism = "pointwise"}
func.func @gated(%x: tensor<4x8xf32>, %w: tensor<8x32xf32>) -> tensor<4x16xf32> {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32> loc("product")
  %a = graph.slice %product {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (tensor<4x32xf32>) -> tensor<4x16xf32>
  %b = graph.slice %product {starts = #graph.dims<0, 16>, steps = array<i64: 1, 1>} : (tensor<4x32xf32>) -> tensor<4x16xf32>
  %s = graph.sigmoid %b : tensor<4x16xf32>
  %y = graph.mul %a, %s : tensor<4x16xf32> loc("y")
  return %y : tensor<4x16xf32>
}

// Parts of different sizes.
// CHECK-LABEL: @unequal_parts
// CHECK: graph.group "product" {mechanism = "contraction"}
// CHECK-NEXT: graph.matmul
// CHECK-NEXT: graph.yield
func.func @unequal_parts(%x: tensor<4x8xf32>, %w: tensor<8x32xf32>) -> (tensor<4x8xf32>, tensor<4x24xf32>) {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32> loc("product")
  %a = graph.slice %product {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (tensor<4x32xf32>) -> tensor<4x8xf32>
  %b = graph.slice %product {starts = #graph.dims<0, 8>, steps = array<i64: 1, 1>} : (tensor<4x32xf32>) -> tensor<4x24xf32>
  %y = graph.neg %a : tensor<4x8xf32>
  %z = graph.neg %b : tensor<4x24xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x24xf32>
}

// Others read the whole product.
// CHECK-LABEL: @read_whole
// CHECK: graph.group "product" {mechanism = "contraction"}
// CHECK-NEXT: graph.matmul
// CHECK-NEXT: graph.yield
func.func @read_whole(%x: tensor<4x8xf32>, %w: tensor<8x32xf32>) -> (tensor<4x16xf32>, tensor<4x32xf32>) {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32> loc("product")
  %a = graph.slice %product {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (tensor<4x32xf32>) -> tensor<4x16xf32>
  %b = graph.slice %product {starts = #graph.dims<0, 16>, steps = array<i64: 1, 1>} : (tensor<4x32xf32>) -> tensor<4x16xf32>
  %y = graph.mul %a, %b : tensor<4x16xf32>
  return %y, %product : tensor<4x16xf32>, tensor<4x32xf32>
}

// The cell of an LSTM: its state and its output are two results of one group.
// CHECK-LABEL: @two_results
// CHECK: graph.group "h" {mechanism = "contraction"} : tensor<4x16xf32>, tensor<4x16xf32>
// CHECK: graph.yield %{{.*}}, %{{.*}}
// CHECK-NOT: graph.group
func.func @two_results(%x: tensor<4x8xf32>, %w: tensor<8x48xf32>, %state: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x48xf32>) -> tensor<4x48xf32>
  %i = graph.slice %product {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (tensor<4x48xf32>) -> tensor<4x16xf32>
  %f = graph.slice %product {starts = #graph.dims<0, 16>, steps = array<i64: 1, 1>} : (tensor<4x48xf32>) -> tensor<4x16xf32>
  %o = graph.slice %product {starts = #graph.dims<0, 32>, steps = array<i64: 1, 1>} : (tensor<4x48xf32>) -> tensor<4x16xf32>
  %kept = graph.mul %state, %f : tensor<4x16xf32>
  %c = graph.add %kept, %i : tensor<4x16xf32> loc("c")
  %t = graph.tanh %c : tensor<4x16xf32>
  %h = graph.mul %t, %o : tensor<4x16xf32> loc("h")
  return %h, %c : tensor<4x16xf32>, tensor<4x16xf32>
}

// What is read elsewhere in any case does not keep its other reader out.
// CHECK-LABEL: @also_yielded
// CHECK: graph.group "y" {mechanism = "contraction"} : tensor<4x16xf32>, tensor<4x16xf32>
// CHECK-NOT: graph.group
func.func @also_yielded(%x: tensor<4x8xf32>, %w: tensor<8x32xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %product = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32> loc("product")
  %a = graph.slice %product {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (tensor<4x32xf32>) -> tensor<4x16xf32>
  %s = graph.sigmoid %a : tensor<4x16xf32>
  %b = graph.slice %product {starts = #graph.dims<0, 16>, steps = array<i64: 1, 1>} : (tensor<4x32xf32>) -> tensor<4x16xf32>
  %y = graph.mul %b, %s : tensor<4x16xf32> loc("y")
  return %y, %s : tensor<4x16xf32>, tensor<4x16xf32>
}
}
