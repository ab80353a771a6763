// Movement ops: each constraint label once; the shape rules of inferred ops.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file | FileCheck %s

!x = tensor<?x3xf32, #graph.dims<"n", 3>>
// CHECK-LABEL: @round_trip
func.func @round_trip(%x: !x, %v: tensor<f32>, %i: tensor<2xi64>) {
  // CHECK: graph.constant dense<[1, 2]> : tensor<2xi64>
  %c = graph.constant dense<[1, 2]> : tensor<2xi64>
  // CHECK: graph.sizes {values = #graph.dims<"n", 3>} : () -> tensor<2xi64>
  %s = graph.sizes {values = #graph.dims<"n", 3>} : () -> tensor<2xi64>
  // CHECK: graph.pad {{.*}} {high = #graph.dims<"n", 0>, low = #graph.dims<1, 0>, mode = "edge"}
  %p = graph.pad %x, %v {low = #graph.dims<1, 0>, high = #graph.dims<"n", 0>, mode = "edge"}
    : (!x, tensor<f32>) -> tensor<?x3xf32, #graph.dims<"2*n + 1", 3>>
  // CHECK: graph.gather {{.*}} -> tensor<?x2xf32, #graph.dims<"n", 2>>
  %g = graph.gather %x, %i {axis = 1} : (!x, tensor<2xi64>) -> tensor<?x2xf32, #graph.dims<"n", 2>>
  // CHECK: graph.concat {{.*}} -> tensor<?x3xf32, #graph.dims<"n + 2", 3>>
  %two = graph.constant dense<0.0> : tensor<2x3xf32>
  %k = graph.concat %x, %two {axis = 0} : (!x, tensor<2x3xf32>) -> tensor<?x3xf32, #graph.dims<"n + 2", 3>>
  return
}

// -----

func.func @r1(%x: tensor<6xf32>) {
  // expected-error @+1 {{R1: 6 elements cannot have the shape of 'tensor<4xf32>', which has 4}}
  %r = graph.reshape %x : (tensor<6xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @b1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{B1: rank 2 cannot broadcast to rank 1}}
  %r = graph.broadcast %x : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @b2(%x: tensor<2xf32>) {
  // expected-error @+1 {{B2: size 2 cannot broadcast to 3}}
  %r = graph.broadcast %x : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @t1(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{T1: 'permutation' must hold each axis once}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.transpose %x {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @s1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{S1: needs one start, one step and one size a dimension}}
  %r = graph.slice %x {starts = #graph.dims<0>, steps = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @s2(%x: tensor<2xf32>) {
  // expected-error @+1 {{S2: a step must not be 0}}
  %r = graph.slice %x {starts = #graph.dims<0>, steps = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @cc2(%x: tensor<2xf32>) {
  // expected-error @+2 {{CC2: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.concat %x, %x {axis = 1} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @cc3(%x: tensor<2xf32>, %y: tensor<2x1xf32>) {
  // expected-error @+2 {{CC3: operands have rank 1 and 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.concat %x, %y {axis = 0} : (tensor<2xf32>, tensor<2x1xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @cc4(%x: tensor<2x2xf32>, %y: tensor<2x3xf32>) {
  // expected-error @+2 {{CC4: sizes of dimension 1 differ: 2 and 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.concat %x, %y {axis = 0} : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @p1(%x: tensor<2xf32>, %v: tensor<f32>) {
  // expected-error @+2 {{P1: 'low' and 'high' need one entry a dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.pad %x, %v {low = #graph.dims<1, 1>, high = #graph.dims<0>} : (tensor<2xf32>, tensor<f32>) -> tensor<3xf32>
  return
}

// -----

func.func @g1(%x: tensor<2xf32>, %i: tensor<1x2xi64>) {
  // expected-error @+2 {{G1: the last size of 'indices' must be constant and at most the rank of x less batch_dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.gather_nd %x, %i {batch_dims = 0} : (tensor<2xf32>, tensor<1x2xi64>) -> tensor<1xf32>
  return
}

// -----

func.func @axis(%x: tensor<2xf32>, %i: tensor<1xi64>) {
  // expected-error @+2 {{axis 2 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.gather %x, %i {axis = 2} : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>
  return
}

// -----

func.func @sizes() {
  // expected-error @+1 {{has 2 values for 'tensor<3xi64>'}}
  %r = graph.sizes {values = #graph.dims<1, 2>} : () -> tensor<3xi64>
  return
}
