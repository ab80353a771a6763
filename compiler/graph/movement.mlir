// Movement ops: each constraint label once; the shape rules of inferred ops.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file | FileCheck %s

!x = tensor<?x3xf32, #graph.dims<"n", 3>>
// CHECK-LABEL: @round_trip
func.func @round_trip(%x: !x, %v: tensor<f32>, %i: tensor<2xi64>) {
  // CHECK: graph.constant dense<[1, 2]> : tensor<2xi64>
  %c = graph.constant dense<[1, 2]> : tensor<2xi64>
  // CHECK: graph.sizes {values = #graph.dims<"n", 3>} : () -> tensor<2xi64>
  %s = graph.sizes {values = #graph.dims<"n", 3>} : () -> tensor<2xi64>
  // CHECK: graph.sizes {values = #graph.dims<-288230376151711744>} : () -> tensor<i64>
  %least = graph.sizes {values = #graph.dims<-288230376151711744>} : () -> tensor<i64>
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
  // expected-error @+1 {{S1: needs one start, one step and one size per dimension}}
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
  // expected-error @+2 {{AX1: axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.concat %x, %x {axis = 1} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @cc3(%x: tensor<2xf32>, %y: tensor<2x1xf32>) {
  // expected-error @+2 {{CC2: operands have rank 1 and 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.concat %x, %y {axis = 0} : (tensor<2xf32>, tensor<2x1xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @cc4(%x: tensor<2x2xf32>, %y: tensor<2x3xf32>) {
  // expected-error @+2 {{CC3: sizes of dimension 1 differ: 2 and 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.concat %x, %y {axis = 0} : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @p1(%x: tensor<2xf32>, %v: tensor<f32>) {
  // expected-error @+2 {{P1: 'low' and 'high' need one entry per dimension}}
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
  // expected-error @+2 {{AX1: axis 2 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.gather %x, %i {axis = 2} : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>
  return
}

// -----

func.func @sizes() {
  // expected-error @+1 {{SZ1: has 2 values for 'tensor<3xi64>'}}
  %r = graph.sizes {values = #graph.dims<1, 2>} : () -> tensor<3xi64>
  return
}

// -----

!open = tensor<?xi64, #graph.dims<"n">>
func.func @open_sizes() {
  // expected-error @+1 {{SZ1: has 2 values for}}
  %r = graph.sizes {values = #graph.dims<1, 2>} : () -> !open
  return
}

// -----

func.func @s3(%x: tensor<4xf32>) {
  // expected-error @+1 {{S3: elements 1 to 5 of dimension 0 are asked for, which has 4}}
  %r = graph.slice %x {starts = #graph.dims<1>, steps = array<i64: 2>} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @ge2(%x: tensor<3x4xf32>, %i: tensor<3x4x4xi64>) {
  // expected-error @+2 {{GE1: x has rank 2, but indices have rank 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.gather_elements %x, %i {axis = 0} : (tensor<3x4xf32>, tensor<3x4x4xi64>) -> tensor<3x4x4xf32>
  return
}

// -----

func.func @ge3(%x: tensor<3x4xf32>, %i: tensor<4x4xi64>) {
  // expected-error @+2 {{GE2: indices of shape 'tensor<4x4xi64>' reach beyond x of shape 'tensor<3x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.gather_elements %x, %i {axis = 1} : (tensor<3x4xf32>, tensor<4x4xi64>) -> tensor<4x4xf32>
  return
}

// -----

func.func @g2(%x: tensor<2x3xf32>, %i: tensor<1xi64>) {
  // expected-error @+2 {{G2: indices of rank 1 have no batch of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.gather_nd %x, %i {batch_dims = 1} : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @g3(%x: tensor<2x3xf32>, %i: tensor<3x1xi64>) {
  // expected-error @+2 {{G3: x has a batch of 2, indices of 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.gather_nd %x, %i {batch_dims = 1} : (tensor<2x3xf32>, tensor<3x1xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @se1(%x: tensor<2x3xf32>, %i: tensor<2x3xi64>, %u: tensor<2xf32>) {
  // expected-error @+2 {{SE1: updates of shape 'tensor<2xf32>' do not have the shape of indices, 'tensor<2x3xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.scatter_elements %x, %i, %u {axis = 0} : (tensor<2x3xf32>, tensor<2x3xi64>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @sn1(%x: tensor<2x3xf32>, %i: tensor<1x3xi64>, %u: tensor<1xf32>) {
  // expected-error @+2 {{SN1: the last size of 'indices' must be constant and at most the rank of x, 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.scatter_nd %x, %i, %u : (tensor<2x3xf32>, tensor<1x3xi64>, tensor<1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @sn2(%x: tensor<2x3xf32>, %i: tensor<4x1xi64>, %u: tensor<4xf32>) {
  // expected-error @+2 {{SN2: updates of shape 'tensor<4xf32>' do not have the shape of what indices of shape 'tensor<4x1xi64>' take of x}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.scatter_nd %x, %i, %u : (tensor<2x3xf32>, tensor<4x1xi64>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @rs1(%x: tensor<3xf32>, %l: tensor<3xi64>) {
  // expected-error @+2 {{RS1: 'time_axis' 0 and 'batch_axis' 1 must be two dimensions of x, whose rank is 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.reverse_sequence %x, %l {time_axis = 0, batch_axis = 1} : (tensor<3xf32>, tensor<3xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @rs2(%x: tensor<4x3xf32>, %l: tensor<3x1xi64>) {
  // expected-error @+2 {{RS2: lengths of shape 'tensor<3x1xi64>' must be a vector of 3, one an entry of the batch}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = graph.reverse_sequence %x, %l {time_axis = 0, batch_axis = 1} : (tensor<4x3xf32>, tensor<3x1xi64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @dr1(%x: tensor<4xf32>, %s: tensor<3xi64>) {
  // expected-error @+1 {{DR1: needs a vector of 2 integers, but found 'tensor<3xi64>'}}
  %r = graph.dynamic_reshape %x, %s : (tensor<4xf32>, tensor<3xi64>) -> tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">>
  return
}

// -----

func.func @db1(%x: tensor<4xf32>, %s: tensor<3xi64>) {
  // expected-error @+1 {{DB1: the result has rank 2, but x has 1 and the shape asks for 3}}
  %r = graph.dynamic_broadcast %x, %s : (tensor<4xf32>, tensor<3xi64>) -> tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">>
  return
}

// -----

func.func @ds1(%x: tensor<4xf32>, %s: tensor<1xi64>) {
  // expected-error @+1 {{AX1: axis 1 is outside of rank 1}}
  %r = graph.dynamic_slice %x, %s, %s, %s {axes = array<i64: 1>} : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32, #graph.dims<"$r.0">>
  return
}

// -----

func.func @ds2(%x: tensor<4xf32>, %s: tensor<1xi64>) {
  // expected-error @+1 {{DS1: the result has rank 2, x has 1}}
  %r = graph.dynamic_slice %x, %s, %s, %s {axes = array<i64: 0>} : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x1xf32, #graph.dims<"$r.0", 1>>
  return
}

// -----

func.func @ds3(%x: tensor<4xf32>, %s: tensor<2xi64>) {
  // expected-error @+1 {{DS2: needs a vector of 1 integers, but found 'tensor<2xi64>'}}
  %r = graph.dynamic_slice %x, %s, %s, %s {axes = array<i64: 0>} : (tensor<4xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?xf32, #graph.dims<"$r.0">>
  return
}

// -----

func.func @rg1(%a: tensor<2xi64>) {
  // expected-error @+1 {{RG1: start, limit and delta must be scalars of one type}}
  %r = graph.range %a, %a, %a : (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?xi64, #graph.dims<"$r.0">>
  return
}

// -----

func.func @cc1() {
  // expected-error @+2 {{CC1: needs at least one operand}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "graph.concat"() {axis = 0 : i64} : () -> tensor<2xf32>
  return
}

// -----

func.func @rz1(%x: tensor<1x4xf32>) {
  // expected-error @+1 {{RZ1: needs one scale per dimension}}
  %y = graph.resize %x {scales = array<f64: 2.0>, mode = "nearest", coordinates = "asymmetric"} : (tensor<1x4xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @rl1(%x: tensor<?x3xi64, #graph.dims<"batch", 3>>) {
  // expected-error @+1 {{RL1: 'tensor<?x3xi64, #graph.dims<"batch", 3>>' are no lengths of rows 'batch', nor a mask of these and 'seq'}}
  %r = graph.row_lengths %x {of = "batch", size = "seq"} : (tensor<?x3xi64, #graph.dims<"batch", 3>>) -> tensor<?xi64, #graph.dims<"batch">>
  return
}

// -----

func.func @rl2(%x: tensor<?xi64, #graph.dims<"batch">>, %y: tensor<?x?xf32, #graph.dims<"batch", "seq">>) {
  %a = graph.add %x, %x : tensor<?xi64, #graph.dims<"batch">>
  // expected-error @+1 {{RL2: x must be an argument of the function around it}}
  %r = graph.row_lengths %a {of = "batch", size = "seq"} : (tensor<?xi64, #graph.dims<"batch">>) -> tensor<?xi64, #graph.dims<"batch">>
  return
}

// -----

func.func @rl3(%x: tensor<?x?xf32, #graph.dims<"batch", "seq">>, %n: tensor<?xi64, #graph.dims<"batch">>) {
  %c = graph.slice %x {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (tensor<?x?xf32, #graph.dims<"batch", "seq">>) -> tensor<?x?xf32, #graph.dims<"batch", "seq(batch)">>
  // expected-error @+1 {{RL3: 'graph.slice' before it has sizes of rows 'batch'}}
  %r = graph.row_lengths %n {of = "batch", size = "seq"} : (tensor<?xi64, #graph.dims<"batch">>) -> tensor<?xi64, #graph.dims<"batch">>
  return
}

// -----

func.func @rl4(%x: tensor<?x?xf32, #graph.dims<"batch", "seq">>, %n: tensor<?xi64, #graph.dims<"batch">>, %i: tensor<2xi1>) {
  // expected-error @+1 {{RL4: 'graph.gather' of rows 'batch' has the size 'found', which no argument has}}
  %r = graph.row_lengths %n {of = "batch", size = "seq"} : (tensor<?xi64, #graph.dims<"batch">>) -> tensor<?xi64, #graph.dims<"batch">>
  %p = graph.nonzero %i : (tensor<2xi1>) -> tensor<1x?xi64, #graph.dims<1, "found">>
  %f = graph.reshape %p : (tensor<1x?xi64, #graph.dims<1, "found">>) -> tensor<?xi64, #graph.dims<"found">>
  %c = graph.slice %x {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (tensor<?x?xf32, #graph.dims<"batch", "seq">>) -> tensor<?x?xf32, #graph.dims<"batch", "seq(batch)">>
  %g = graph.gather %c, %f {axis = 1 : i64} : (tensor<?x?xf32, #graph.dims<"batch", "seq(batch)">>, tensor<?xi64, #graph.dims<"found">>) -> tensor<?x?xf32, #graph.dims<"batch", "found">>
  return
}

// -----

func.func @rl5(%n: tensor<?xi64, #graph.dims<"batch">>, %x: tensor<?x?xf32, #graph.dims<"batch", "2*seq">>) {
  // expected-error @+1 {{RL5: no argument of the function has the size 'seq', which is the most that a row may have; give one that size}}
  %r = graph.row_lengths %n {of = "batch", size = "seq"} : (tensor<?xi64, #graph.dims<"batch">>) -> tensor<?xi64, #graph.dims<"batch">>
  return
}

// -----

func.func @bs1(%x: tensor<2xi64>) {
  // expected-error @+1 {{BS1: 'tensor<2xi64>' is no static tensor of integers with 1 elements}}
  graph.bind_sizes %x {symbols = #graph.dims<"$a">, message = ""} : tensor<2xi64>
  return
}

// -----

func.func @bs2(%x: tensor<1xi64>, %told: tensor<3xi64>) {
  // expected-error @+1 {{BS2: 'tensor<3xi64>' is not two integers}}
  graph.bind_sizes %x told %told : tensor<3xi64> {symbols = #graph.dims<"$a">, message = ""} : tensor<1xi64>
  return
}

// -----

func.func @iota_axis() {
  // expected-error @+1 {{AX1: axis 1 is outside of rank 1}}
  %y = graph.iota {axis = 1 : i64} : () -> tensor<4xi64>
  return
}

// -----

func.func @iota_before() {
  // expected-error @+1 {{AX1: axis -1 is outside of rank 1}}
  %y = graph.iota {axis = -1 : i64} : () -> tensor<4xi64>
  return
}
