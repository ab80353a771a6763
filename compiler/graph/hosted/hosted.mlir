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

func.func @ls2(%x: tensor<2xi32>) {
  // expected-error @+1 {{LS2: a list of 'f32' cannot hold 'tensor<2xi32>'}}
  %l = graph.list_make %x : (tensor<2xi32>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @ls3(%l: tensor<!graph.list<"sequence", f32, 1>>, %p: tensor<2xi64>) {
  // expected-error @+1 {{LS3: a position must be one i32 or i64, but is 'tensor<2xi64>'}}
  %a = graph.list_at %l, %p : (tensor<!graph.list<"sequence", f32, 1>>, tensor<2xi64>) -> tensor<?xf32, #graph.dims<"$a">>
  return
}

// -----

func.func @one_at_most(%x: tensor<2xf32>) {
  // expected-error @+1 {{LS4: an optional holds at most one tensor}}
  %l = graph.list_make %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<!graph.list<"optional", f32, 1>>
  return
}

// -----

func.func @e1(%x: tensor<2x!graph.string>, %y: tensor<3x!graph.string>) {
  // expected-error @+1 {{E1: operands and result must have one type}}
  %z = graph.string_concat %x, %y : (tensor<2x!graph.string>, tensor<3x!graph.string>) -> tensor<2x!graph.string>
  return
}

// -----

func.func @numbers(%x: tensor<2xi64>) {
  // expected-error @+1 {{CA1: either the operand or the result must have strings}}
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

// -----

func.func @ls1(%x: tensor<2xf32>) {
  // expected-error @+1 {{LS1: the operand must be a list, but is 'tensor<2xf32>'}}
  %y = graph.list_length %x : (tensor<2xf32>) -> tensor<i64>
  return
}

// -----

func.func @list_axis(%l: tensor<!graph.list<"sequence", f32, 1>>) {
  // expected-error @+1 {{AX1: axis 1 is outside of rank 1}}
  %y = graph.list_concat %l {axis = 1} : (tensor<!graph.list<"sequence", f32, 1>>) -> tensor<?xf32, #graph.dims<"$n">>
  return
}

// -----

func.func @split_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{AX1: axis 1 is outside of rank 1}}
  %y = graph.list_split %x {axis = 1} : (tensor<4xf32>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @ls5(%x: tensor<4xf32>, %s: tensor<2x2xi64>) {
  // expected-error @+1 {{LS5: sizes must be a scalar or a vector of integers, but is 'tensor<2x2xi64>'}}
  %y = graph.list_split %x, %s {axis = 0} : (tensor<4xf32>, tensor<2x2xi64>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @ls6(%l: tensor<!graph.list<"sequence", f32, 1>>) {
  // expected-error @+1 {{LS6: element types of the lists differ}}
  %y = graph.list_cast %l : (tensor<!graph.list<"sequence", f32, 1>>) -> tensor<!graph.list<"sequence", i64, 1>>
  return
}

// -----

func.func @st1(%x: tensor<2xf32>, %t: tensor<1x257xi32>) {
  // expected-error @+1 {{ST1: x must have strings, but is 'tensor<2xf32>'}}
  %y = graph.string_match %x, %t : (tensor<2xf32>, tensor<1x257xi32>) -> tensor<2xi1>
  return
}

// -----

func.func @ma1(%x: tensor<2x!graph.string>, %t: tensor<1x256xi32>) {
  // expected-error @+1 {{MA1: transitions must be i32[states, 257], but are 'tensor<1x256xi32>'}}
  %y = graph.string_match %x, %t : (tensor<2x!graph.string>, tensor<1x256xi32>) -> tensor<2xi1>
  return
}

// -----

func.func @sp1(%x: tensor<2x!graph.string>, %d: tensor<!graph.string>) {
  // expected-error @+1 {{SP1: the pieces must have a dimension more than x}}
  %p, %c = graph.string_split %x, %d : (tensor<2x!graph.string>, tensor<!graph.string>) -> (tensor<2x!graph.string>, tensor<2xi64>)
  return
}

// -----

func.func @sp2(%x: tensor<2x!graph.string>, %d: tensor<4x257xi32>) {
  // expected-error @+1 {{SP2: the delimiter must be a string or i32[states, 259], but is 'tensor<4x257xi32>'}}
  %p, %c = graph.string_split %x, %d : (tensor<2x!graph.string>, tensor<4x257xi32>) -> (tensor<2x?x!graph.string, #graph.dims<2, "$p">>, tensor<2xi64>)
  return
}

// -----

func.func @no1(%x: tensor<1x1x2x!graph.string>, %s: tensor<1x!graph.string>) {
  // expected-error @+1 {{NO1: x must have rank 1 or 2, and the result the same}}
  %y = graph.string_normalize %x, %s {letter_case = "none"} : (tensor<1x1x2x!graph.string>, tensor<1x!graph.string>) -> tensor<?x!graph.string, #graph.dims<"$n">>
  return
}

// -----

func.func @no2(%x: tensor<2x!graph.string>, %s: tensor<1x!graph.string>) {
  // expected-error @+1 {{NO2: letter_case is 'title', not none, lower or upper}}
  %y = graph.string_normalize %x, %s {letter_case = "title"} : (tensor<2x!graph.string>, tensor<1x!graph.string>) -> tensor<?x!graph.string, #graph.dims<"$n">>
  return
}

// -----

func.func @im1(%x: tensor<2x2xui8>) {
  // expected-error @+1 {{IM1: x must be ui8[n] and the result ui8[height, width, channels]}}
  %y = graph.image_decode %x {pixel_format = "rgb"} : (tensor<2x2xui8>) -> tensor<?x?x3xui8, #graph.dims<"$h", "$w", 3>>
  return
}

// -----

func.func @im2(%x: tensor<2xui8>) {
  // expected-error @+1 {{IM2: pixel_format is 'cmyk', not rgb, bgr or gray}}
  %y = graph.image_decode %x {pixel_format = "cmyk"} : (tensor<2xui8>) -> tensor<?x?x3xui8, #graph.dims<"$h", "$w", 3>>
  return
}

// -----

func.func @im3(%x: tensor<2xui8>) {
  // expected-error @+1 {{IM3: a result of gray pixels cannot be}}
  %y = graph.image_decode %x {pixel_format = "gray"} : (tensor<2xui8>) -> tensor<?x?x3xui8, #graph.dims<"$h", "$w", 3>>
  return
}

// -----

func.func @rt1(%x: tensor<2xf32>) {
  // expected-error @+1 {{RT1: x must be of 'i1' and rank 1, but is 'tensor<2xf32>'}}
  %y = graph.nonzero %x : (tensor<2xf32>) -> tensor<1x?xi64, #graph.dims<1, "$n">>
  return
}

// -----

func.func @rt2(%x: tensor<2x3xi1>) {
  // expected-error @+1 {{RT2: the sizes of the result do not follow from the operands}}
  %y = graph.nonzero %x : (tensor<2x3xi1>) -> tensor<1x?xi64, #graph.dims<1, "$n">>
  return
}

// -----

func.func @rt3(%x: tensor<4x!graph.scale8>) {
  // expected-error @+1 {{RT3: elements of '!graph.scale8' cannot be ordered or added}}
  %v, %i = graph.topk %x {axis = 0} : (tensor<4x!graph.scale8>) -> (tensor<2x!graph.scale8>, tensor<2xi64>)
  return
}

// -----

func.func @fo1(%x: tensor<2x3xf32>, %n: tensor<1x2xi64>, %r: tensor<1x2xi64>, %w: tensor<1x1xf32>) {
  // expected-error @+1 {{FO1: nodes and roots must be constants of pairs}}
  %y = graph.forest %x, %n, %r, %w : (tensor<2x3xf32>, tensor<1x2xi64>, tensor<1x2xi64>, tensor<1x1xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @sd1() {
  // expected-error @+1 {{SD1: the result must be a scalar of ui64, but is 'tensor<2xui64>'}}
  %seed = graph.run_seed : () -> tensor<2xui64>
  return
}
