// Ops on lists and strings: round trip, and each constraint label once.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file | FileCheck %s

!list = tensor<!graph.list<"sequence", f32, 1>>

// CHECK-LABEL: @round_trip
// CHECK-SAME: tensor<!graph.list<"optional_sequence", f32, -2>>
func.func @round_trip(%x: tensor<2xf32>, %p: tensor<i64>, %o: tensor<!graph.list<"optional_sequence", f32, -2>>) -> !list {
  // CHECK: graph.list_make %{{.*}}, %{{.*}} : (tensor<2xf32>, tensor<2xf32>) -> tensor<!graph.list<"sequence", f32, 1>>
  %l = graph.list_make %x, %x : (tensor<2xf32>, tensor<2xf32>) -> !list
  // CHECK: graph.list_insert %{{.*}}, %{{.*}}, %{{.*}} :
  %m = graph.list_insert %l, %x, %p : (!list, tensor<2xf32>, tensor<i64>) -> !list
  // CHECK: graph.list_cast
  %c = graph.list_cast %o : (tensor<!graph.list<"optional_sequence", f32, -2>>) -> !list
  return %m : !list
}

// -----

func.func @l2(%x: tensor<2xi32>) {
  // expected-error @+1 {{L2: a list of 'f32' cannot hold 'tensor<2xi32>'}}
  %l = graph.list_make %x : (tensor<2xi32>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @l3(%l: tensor<!graph.list<"sequence", f32, 1>>, %p: tensor<2xi64>) {
  // expected-error @+1 {{L3: a position must be one i32 or i64, but is 'tensor<2xi64>'}}
  %a = graph.list_at %l, %p : (tensor<!graph.list<"sequence", f32, 1>>, tensor<2xi64>) -> tensor<?xf32, #graph.dims<"$a">>
  return
}

// -----

func.func @one_at_most(%x: tensor<2xf32>) {
  // expected-error @+1 {{an optional holds at most one tensor}}
  %l = graph.list_make %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<!graph.list<"optional", f32, 1>>
  return
}

// -----

func.func @e1(%x: tensor<2xsi64>, %y: tensor<3xsi64>) {
  // expected-error @+1 {{E1: operands and result must have one type}}
  %z = graph.string_concat %x, %y : (tensor<2xsi64>, tensor<3xsi64>) -> tensor<2xsi64>
  return
}

// -----

func.func @numbers(%x: tensor<2xi64>) {
  // expected-error @+1 {{either the operand or the result must have strings}}
  %z = graph.string_cast %x : (tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @custom(%x: tensor<2xf32>) {
  %about = graph.constant dense<[0, 97, 0, 98, 0]> : tensor<5xui8>
  // expected-error @+1 {{CU1: about must be constant text of four parts that end with 0}}
  %y = graph.custom %about, %x : (tensor<5xui8>, tensor<2xf32>) -> tensor<?xf32, #graph.dims<"$n">>
  return
}

// -----

func.func @sizes_of_custom(%x: tensor<2xf32>) {
  %about = graph.constant dense<[0, 97, 0, 98, 0, 0]> : tensor<6xui8>
  // expected-error @+1 {{CU2: the sizes of results must be symbols, but one is 2}}
  %y = graph.custom %about, %x : (tensor<6xui8>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @fourier_without_parts(%x: tensor<8xf32>) {
  // expected-error @+1 {{FT1: x must have an axis of signals and one of real and imaginary parts}}
  %y = graph.fourier %x {axis = 0, length = #graph.dims<8>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @fourier_without_length(%x: tensor<8x2xf32>) {
  // expected-error @+1 {{FT2: there must be one length, but there are 0}}
  %y = graph.fourier %x {axis = 0, length = #graph.dims<>} : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return
}
