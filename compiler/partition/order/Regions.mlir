// Apollo's third layer: groups that follow each other and read nothing of each other are one launch.
// RUN: heddle-opt %s --heddle-partition="without=stitch" | FileCheck %s

module {
// CHECK-LABEL: @independent
// CHECK: graph.group "a" {mechanism = "contraction", region = 0 : i64}
// CHECK: graph.group "b" {mechanism = "contraction", region = 0 : i64}
// CHECK: graph.group "y" {mechanism = "pointwise"}
func.func @independent(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %v: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %a = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("a")
  %b = graph.matmul %x, %v : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("b")
  %t = graph.concat %a, %b {axis = 1} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x32xf32>
  %y = graph.reduce_max %t {axes = array<i64: 0>} : (tensor<4x32xf32>) -> tensor<32xf32> loc("y")
  %r = graph.reshape %y : (tensor<32xf32>) -> tensor<2x16xf32>
  %z = graph.concat %r, %r {axis = 0} : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<4x16xf32> loc("z")
  return %z : tensor<4x16xf32>
}

// One that reads another through a view is another launch.
// CHECK-LABEL: @through_a_view
// CHECK-NOT: region =
func.func @through_a_view(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %v: tensor<32x4xf32>) -> tensor<2x4xf32> {
  %a = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("a")
  %view = graph.reshape %a : (tensor<4x16xf32>) -> tensor<2x32xf32>
  %b = graph.matmul %view, %v : (tensor<2x32xf32>, tensor<32x4xf32>) -> tensor<2x4xf32> loc("b")
  return %b : tensor<2x4xf32>
}

// What runs on the host ends a region: its sizes may be needed for the next launch.
// CHECK-LABEL: @host_between
// CHECK-NOT: region =
func.func @host_between(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %c: tensor<i1>) -> (tensor<4x16xf32>, tensor<4x8xf32>, tensor<f32>) {
  %one = graph.constant dense<1.0> : tensor<f32>
  %a = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("a")
  %if = graph.if %c : (tensor<i1>) -> tensor<f32> {
    graph.yield %one : tensor<f32>
  } else {
    %two = graph.constant dense<2.0> : tensor<f32>
    graph.yield %two : tensor<f32>
  }
  %b = graph.exp %x : tensor<4x8xf32> loc("b")
  return %a, %b, %if : tensor<4x16xf32>, tensor<4x8xf32>, tensor<f32>
}
}
