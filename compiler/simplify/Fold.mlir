// RUN: heddle-opt %s --heddle-simplify-fold | FileCheck %s

module {
// CHECK-LABEL: @sums_constants
// CHECK: graph.constant dense<[4.0{{.*}}, 6.0{{.*}}]>
// CHECK-NOT: graph.add
func.func @sums_constants() -> tensor<2xf32> {
  %a = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = graph.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %c = graph.add %a, %b : tensor<2xf32>
  return %c : tensor<2xf32>
}

// CHECK-LABEL: @sees_through_broadcasts
// CHECK: graph.constant dense<[2.0{{.*}}, 4.0{{.*}}]>
func.func @sees_through_broadcasts() -> tensor<2xf32> {
  %a = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = graph.constant dense<2.0> : tensor<f32>
  %w = graph.broadcast %b : (tensor<f32>) -> tensor<2xf32>
  %c = graph.mul %a, %w : tensor<2xf32>
  return %c : tensor<2xf32>
}

// CHECK-LABEL: @leaves_growing_broadcasts
// CHECK: graph.broadcast
func.func @leaves_growing_broadcasts() -> tensor<1024x1024xf32> {
  %b = graph.constant dense<2.0> : tensor<f32>
  %w = graph.broadcast %b : (tensor<f32>) -> tensor<1024x1024xf32>
  return %w : tensor<1024x1024xf32>
}

// The number of elements is known once they are: the type follows.
// CHECK-LABEL: @refines_what_the_op_bound
// CHECK-SAME: -> tensor<2xf32>
// CHECK: graph.constant dense<[1.000000e+00, 2.500000e+00]> : tensor<2xf32>
func.func @refines_what_the_op_bound() -> tensor<?xf32, #graph.dims<"$range.0">> {
  %start = graph.constant dense<1.0> : tensor<f32>
  %limit = graph.constant dense<3.0> : tensor<f32>
  %delta = graph.constant dense<1.5> : tensor<f32>
  %r = graph.range %start, %limit, %delta : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<?xf32, #graph.dims<"$range.0">>
  return %r : tensor<?xf32, #graph.dims<"$range.0">>
}

// An index outside of the axis is the run's error.
// CHECK-LABEL: @leaves_what_the_interpreter_refuses
// CHECK: graph.gather
func.func @leaves_what_the_interpreter_refuses() -> tensor<f32> {
  %a = graph.constant dense<[1.0, 0.0, 2.0]> : tensor<3xf32>
  %i = graph.constant dense<7> : tensor<i64>
  %g = graph.gather %a, %i {axis = 0 : i64} : (tensor<3xf32>, tensor<i64>) -> tensor<f32>
  return %g : tensor<f32>
}
}
