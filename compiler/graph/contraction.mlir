// Contractions and reductions: each constraint label once; the shape rules of reductions.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file | FileCheck %s

!x = tensor<?x3xf32, #graph.dims<"n", 3>>
// CHECK-LABEL: @round_trip
func.func @round_trip(%x: !x, %w: tensor<3x4xf32>) {
  // CHECK: graph.matmul
  %m = graph.matmul %x, %w : (!x, tensor<3x4xf32>) -> tensor<?x4xf32, #graph.dims<"n", 4>>
  // CHECK: graph.reduce_sum {{.*}} {axes = array<i64: 1>, keep_dims = true} : {{.*}} -> tensor<?x1xf32, #graph.dims<"n", 1>>
  %s = graph.reduce_sum %x {axes = array<i64: 1>, keep_dims = true} : (!x) -> tensor<?x1xf32, #graph.dims<"n", 1>>
  // CHECK: graph.argmax {{.*}} -> tensor<3xi64>
  %a = graph.argmax %x {axis = 0} : (!x) -> tensor<3xi64>
  // CHECK: graph.topk
  %t:2 = graph.topk %x {axis = 1} : (!x) -> (tensor<?x2xf32, #graph.dims<"n", 2>>, tensor<?x2xi64, #graph.dims<"n", 2>>)
  return
}

// -----

func.func @m1(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{M1: operands and result must have one rank, at least 2, but found 2, 1 and 2}}
  %r = graph.matmul %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @m2(%x: tensor<2x2x3xf32>, %y: tensor<3x3x4xf32>) {
  // expected-error @+1 {{M2: batch sizes 2 and 3 differ}}
  %r = graph.matmul %x, %y : (tensor<2x2x3xf32>, tensor<3x3x4xf32>) -> tensor<2x2x4xf32>
  return
}

// -----

func.func @m3(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) {
  // expected-error @+1 {{M3: a row of a has 3 elements, a column of b has 4}}
  %r = graph.matmul %x, %y : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @m4(%x: tensor<2x3xf32>, %y: tensor<3x5xf32>) {
  // expected-error @+1 {{M4: the result must be [..., m, n]}}
  %r = graph.matmul %x, %y : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @m5(%x: tensor<2x24xf32>, %y: tensor<24x5xf32>) {
  // expected-error @+1 {{M5: a block of 16 needs rows of f32 of a multiple of it, but they have 24 'f32'}}
  %r = graph.matmul %x, %y {block = 16} : (tensor<2x24xf32>, tensor<24x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @m5_integers(%x: tensor<2x16xi8>, %y: tensor<16x5xi8>) {
  // expected-error @+1 {{M5: a block of 16 needs rows of f32}}
  %r = graph.matmul %x, %y {block = 16} : (tensor<2x16xi8>, tensor<16x5xi8>) -> tensor<2x5xi32>
  return
}

// -----

func.func @c1(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) {
  // expected-error @+1 {{C1: x, w and the result must have one rank, at least 3}}
  %r = graph.conv %x, %w {strides = array<i64>, dilations = array<i64>, low = array<i64>, high = array<i64>}
    : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @c2(%x: tensor<1x3x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error @+1 {{C2: x has 3 channels, but w takes 2}}
  %r = graph.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>}
    : (tensor<1x3x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @c2_groups(%x: tensor<1x4x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error @+1 {{C2: 3 filters cannot be split into 2 groups}}
  %r = graph.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, groups = 2}
    : (tensor<1x4x8xf32>, tensor<3x2x3xf32>) -> tensor<1x3x6xf32>
  return
}

// -----

func.func @c2_no_groups(%x: tensor<1x4x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error @+1 {{C2: groups is 0, but must be at least 1}}
  %r = graph.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, groups = 0}
    : (tensor<1x4x8xf32>, tensor<3x2x3xf32>) -> tensor<1x3x6xf32>
  return
}

// -----

func.func @c3(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error @+1 {{C3: needs one stride, dilation and two paddings per spatial dimension}}
  %r = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>}
    : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @filter_gradient_c1(%x: tensor<1x2x8xf32>, %dy: tensor<1x4xf32>) {
  // expected-error @+1 {{C1: x, dy and the result must have one rank, at least 3}}
  %r = graph.conv_filter_gradient %x, %dy {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>}
    : (tensor<1x2x8xf32>, tensor<1x4xf32>) -> tensor<4x2x3xf32>
  return
}

// -----

func.func @filter_gradient_c2(%x: tensor<1x2x8xf32>, %dy: tensor<1x4x6xf32>) {
  // expected-error @+1 {{C2: x has 2 channels, dy has 4 in 1 groups, which does not suit filters 4 x 3}}
  %r = graph.conv_filter_gradient %x, %dy {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>}
    : (tensor<1x2x8xf32>, tensor<1x4x6xf32>) -> tensor<4x3x3xf32>
  return
}

// -----

func.func @filter_gradient_c3(%x: tensor<1x2x8xf32>, %dy: tensor<1x4x6xf32>) {
  // expected-error @+1 {{C3: a dilation of 0, but at least 1 is needed}}
  %r = graph.conv_filter_gradient %x, %dy {strides = array<i64: 1>, dilations = array<i64: 0>, low = array<i64: 0>, high = array<i64: 0>}
    : (tensor<1x2x8xf32>, tensor<1x4x6xf32>) -> tensor<4x2x3xf32>
  return
}

// -----

func.func @unpool_u1(%s: tensor<1x2x7xf32>, %x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{U1: images must be none, or one of the result's shape and one of the shape of share}}
  %r = graph.unpool %s, %x, %x {window = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>}
    : (tensor<1x2x7xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  return
}

// -----

func.func @kind(%x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{PO1: kind is 'median', but must be 'max' or 'average'}}
  %r = graph.pool %x {kind = "median", window = array<i64: 1>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>,
    high = array<i64: 0>} : (tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  return
}

// -----

func.func @axis(%x: tensor<2xf32>) {
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.reduce_sum %x {axes = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @c3_no_stride(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error @+1 {{C3: a stride of 0, but at least 1 is needed}}
  %r = graph.conv %x, %w {strides = array<i64: 0>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>}
    : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @cs1(%x: tensor<2xf32>) {
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.cumsum %x {axis = 1} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @tk1(%x: tensor<4xf32>) {
  // expected-error @+1 {{AX1: axis 1 is outside of rank 1}}
  %v, %i = graph.topk %x {axis = 1} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  return
}

// -----

func.func @tk2(%x: tensor<4xf32>) {
  // expected-error @+1 {{TK1: values and indices must have one shape, of the rank of x}}
  %v, %i = graph.topk %x {axis = 0} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<3xi64>)
  return
}

// -----

func.func @tk3(%x: tensor<4xf32>) {
  // expected-error @+1 {{TK2: 5 elements of dimension 0 are asked for, which has 4}}
  %v, %i = graph.topk %x {axis = 0} : (tensor<4xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  return
}
