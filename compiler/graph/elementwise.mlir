// Elementwise ops: round trip, the shape rule, and constraint E1.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file | FileCheck %s

!x = tensor<?x3xf32, #graph.dims<"n", 3>>
!t = tensor<?x3xi1, #graph.dims<"n", 3>>
// CHECK-LABEL: @round_trip
func.func @round_trip(%x: !x, %i: tensor<4xi32>) -> !x {
  // CHECK: graph.exp %{{.*}} : tensor<?x3xf32, #graph.dims<"n", 3>>
  %e = graph.exp %x : !x
  // CHECK: graph.add %{{.*}}, %{{.*}} : tensor<?x3xf32, #graph.dims<"n", 3>>
  %a = graph.add %e, %x : !x
  // CHECK: graph.mod %{{.*}}, %{{.*}} {fmod = true} : tensor<4xi32>
  %m = graph.mod %i, %i {fmod = true} : tensor<4xi32>
  // CHECK: graph.less %{{.*}}, %{{.*}} : ({{.*}}) -> tensor<?x3xi1, #graph.dims<"n", 3>>
  %l = graph.less %a, %x : (!x, !x) -> !t
  // CHECK: graph.is_inf %{{.*}} {negative = false}
  %f = graph.is_inf %a {negative = false} : (!x) -> !t
  // CHECK: graph.select
  %s = graph.select %l, %x, %a : (!t, !x, !x) -> !x
  // CHECK: graph.cast %{{.*}} {saturate = false} : (tensor<4xi32>) -> tensor<4xf8E4M3FN>
  %c = graph.cast %i {saturate = false} : (tensor<4xi32>) -> tensor<4xf8E4M3FN>
  // CHECK: graph.bitcast %{{.*}} : (tensor<4xi32>) -> tensor<4xf32>
  %b = graph.bitcast %i : (tensor<4xi32>) -> tensor<4xf32>
  return %s : !x
}

// -----

func.func @e1(%x: tensor<?xf32, #graph.dims<"n">>) -> tensor<?xi32, #graph.dims<"m">> {
  // expected-error @+1 {{'graph.cast' op E1: operands and result must have one shape}}
  %c = graph.cast %x : (tensor<?xf32, #graph.dims<"n">>) -> tensor<?xi32, #graph.dims<"m">>
  return %c : tensor<?xi32, #graph.dims<"m">>
}

// -----

func.func @e1_select(%c: tensor<2xi1>, %x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{E1: operands and result must have one shape, but found 'tensor<2xi1>' and 'tensor<3xf32>'}}
  %s = graph.select %c, %x, %x : (tensor<2xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// -----

func.func @factor(%x: tensor<3xf32>) -> tensor<3xf16> {
  // expected-error @+1 {{CA1: a factor must be of f32 that become bf16, but is of 'f32' that become 'f16'}}
  %s = graph.cast %x {factor} : (tensor<3xf32>) -> tensor<3xf16>
  return %s : tensor<3xf16>
}

// -----

func.func @bitcast_width(%x: tensor<3xf32>) -> tensor<3xi64> {
  // expected-error @+1 {{BC1: element types must have one width}}
  %s = graph.bitcast %x : (tensor<3xf32>) -> tensor<3xi64>
  return %s : tensor<3xi64>
}

// -----

func.func @truth(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+2 {{op inferred type(s) 'tensor<3xi1>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %s = graph.less %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// -----

func.func @lookup_of_words(%x: tensor<3xi16>) -> tensor<3xi8> {
  // expected-error @+1 {{LU1: x and the result must be integers of 8 bits}}
  %s = graph.lookup %x {table = dense<0> : tensor<256xi8>} : (tensor<3xi16>) -> tensor<3xi8>
  return %s : tensor<3xi8>
}

// -----

func.func @short_table(%x: tensor<3xi8>) -> tensor<3xi8> {
  // expected-error @+1 {{LU2: the table must have 256 elements of the result's type, but is 'tensor<255xi8>'}}
  %s = graph.lookup %x {table = dense<0> : tensor<255xi8>} : (tensor<3xi8>) -> tensor<3xi8>
  return %s : tensor<3xi8>
}
