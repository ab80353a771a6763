// Constraints that several ops have: each label of each op, where its family's file has it of another one.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file

func.func @ax1_of_reduce_max(%x: tensor<2xf32>) {
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.reduce_max %x {axes = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @ax1_of_reduce_min(%x: tensor<2xf32>) {
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.reduce_min %x {axes = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @ax1_of_reduce_prod(%x: tensor<2xf32>) {
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.reduce_prod %x {axes = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @ax1_of_argmax(%x: tensor<2xf32>) {
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.argmax %x {axis = 1} : (tensor<2xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @ax1_of_argmin(%x: tensor<2xf32>) {
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.argmin %x {axis = 1} : (tensor<2xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @ax1_of_gather_elements(%x: tensor<2xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.gather_elements %x, %i {axis = 1} : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @ax1_of_scatter_elements(%x: tensor<2xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.scatter_elements %x, %i, %x {axis = 1, reduction = "none"} : (tensor<2xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @ge1_of_scatter_elements(%x: tensor<2xf32>, %i: tensor<2x1xi64>, %u: tensor<2x1xf32>) {
  // expected-error @+2 {{GE1: x has rank 1, but indices have rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.scatter_elements %x, %i, %u {axis = 0, reduction = "none"} : (tensor<2xf32>, tensor<2x1xi64>, tensor<2x1xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @ge2_of_scatter_elements(%x: tensor<2x3xf32>, %i: tensor<2x4xi64>, %u: tensor<2x4xf32>) {
  // expected-error @+2 {{GE2: indices of shape 'tensor<2x4xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.scatter_elements %x, %i, %u {axis = 0, reduction = "none"} : (tensor<2x3xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @c1_of_conv_transpose(%x: tensor<1x2x8xf32>, %w: tensor<2x4xf32>) {
  // expected-error @+1 {{C1: x, w and the result must have one rank, at least 3}}
  %r = graph.conv_transpose %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, output_padding = array<i64: 0>} : (tensor<1x2x8xf32>, tensor<2x4xf32>) -> tensor<1x4x10xf32>
  return
}

// -----

func.func @c2_of_conv_transpose(%x: tensor<1x2x8xf32>, %w: tensor<3x4x3xf32>) {
  // expected-error @+1 {{C2: x has 2 channels, w takes 3 in 1 groups}}
  %r = graph.conv_transpose %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, output_padding = array<i64: 0>} : (tensor<1x2x8xf32>, tensor<3x4x3xf32>) -> tensor<1x4x10xf32>
  return
}

// -----

func.func @c2_of_conv_transpose_groups(%x: tensor<1x2x8xf32>, %w: tensor<2x4x3xf32>) {
  // expected-error @+1 {{C2: x has 2 channels, w takes 2 in 0 groups}}
  %r = graph.conv_transpose %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, output_padding = array<i64: 0>, groups = 0} : (tensor<1x2x8xf32>, tensor<2x4x3xf32>) -> tensor<1x4x10xf32>
  return
}

// -----

func.func @c3_of_conv_transpose(%x: tensor<1x2x8xf32>, %w: tensor<2x4x3xf32>) {
  // expected-error @+1 {{C3: needs one stride, dilation and three paddings per spatial dimension}}
  %r = graph.conv_transpose %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, output_padding = array<i64>} : (tensor<1x2x8xf32>, tensor<2x4x3xf32>) -> tensor<1x4x10xf32>
  return
}

// -----

func.func @c3_of_conv_transpose_stride(%x: tensor<1x2x8xf32>, %w: tensor<2x4x3xf32>) {
  // expected-error @+1 {{C3: a stride of 0, but at least 1 is needed}}
  %r = graph.conv_transpose %x, %w {strides = array<i64: 0>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>, output_padding = array<i64: 0>} : (tensor<1x2x8xf32>, tensor<2x4x3xf32>) -> tensor<1x4x10xf32>
  return
}

// -----

func.func @c1_of_pool(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{C1: x and the result must have one rank, at least 3}}
  %r = graph.pool %x {kind = "max", window = array<i64>, strides = array<i64>, dilations = array<i64>, low = array<i64>, high = array<i64>} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @c3_of_pool(%x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{C3: a window of 0, but at least 1 is needed}}
  %r = graph.pool %x {kind = "max", window = array<i64: 0>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>} : (tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  return
}

// -----

func.func @c1_of_unpool(%s: tensor<2x7xf32>) {
  // expected-error @+1 {{C1: share and the result must have one rank, at least 3}}
  %r = graph.unpool %s {window = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>} : (tensor<2x7xf32>) -> tensor<1x2x8xf32>
  return
}

// -----

func.func @c3_of_unpool(%s: tensor<1x2x7xf32>) {
  // expected-error @+1 {{C3: needs one window, stride, dilation and padding per spatial dimension}}
  %r = graph.unpool %s {window = array<i64: 2, 2>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>} : (tensor<1x2x7xf32>) -> tensor<1x2x8xf32>
  return
}
