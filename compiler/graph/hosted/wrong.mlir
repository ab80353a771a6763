// Constraints that several ops have: each label of each op, where the file of its folder has it of another one.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file

func.func @ls1_of_list_make(%x: tensor<2xf32>) {
  // expected-error @+1 {{LS1: the result must be a list, but is 'tensor<2xf32>'}}
  %r = graph.list_make %x : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @ls1_of_list_insert(%x: tensor<2xf32>) {
  // expected-error @+1 {{LS1: the operand must be a list, but is 'tensor<2xf32>'}}
  %r = graph.list_insert %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @ls2_of_list_insert(%l: tensor<!graph.list<"sequence", f32, 1>>, %x: tensor<2xi32>) {
  // expected-error @+1 {{LS2: a list of 'f32' cannot hold 'tensor<2xi32>'}}
  %r = graph.list_insert %l, %x : (tensor<!graph.list<"sequence", f32, 1>>, tensor<2xi32>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @ls3_of_list_insert(%l: tensor<!graph.list<"sequence", f32, 1>>, %x: tensor<2xf32>, %p: tensor<f32>) {
  // expected-error @+1 {{LS3: a position must be one i32 or i64, but is 'tensor<f32>'}}
  %r = graph.list_insert %l, %x, %p : (tensor<!graph.list<"sequence", f32, 1>>, tensor<2xf32>, tensor<f32>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @ls1_of_list_erase(%x: tensor<2xf32>) {
  // expected-error @+1 {{LS1: the operand must be a list, but is 'tensor<2xf32>'}}
  %r = graph.list_erase %x : (tensor<2xf32>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @ls3_of_list_erase(%l: tensor<!graph.list<"sequence", f32, 1>>, %p: tensor<i8>) {
  // expected-error @+1 {{LS3: a position must be one i32 or i64, but is 'tensor<i8>'}}
  %r = graph.list_erase %l, %p : (tensor<!graph.list<"sequence", f32, 1>>, tensor<i8>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @ls1_of_list_at(%x: tensor<2xf32>) {
  // expected-error @+1 {{LS1: the operand must be a list, but is 'tensor<2xf32>'}}
  %r = graph.list_at %x : (tensor<2xf32>) -> tensor<?xf32, #graph.dims<"$a">>
  return
}

// -----

func.func @ls2_of_list_at(%l: tensor<!graph.list<"sequence", f32, 1>>) {
  // expected-error @+1 {{LS2: a list of 'f32' cannot hold 'tensor<?xi64}}
  %r = graph.list_at %l : (tensor<!graph.list<"sequence", f32, 1>>) -> tensor<?xi64, #graph.dims<"$a">>
  return
}

// -----

func.func @ls1_of_list_rank(%l: tensor<!graph.list<"sequence", f32, 1>>) {
  // expected-error @+1 {{LS1: the operand must be a list of the kind any_rank, but is 'tensor<!graph.list<"sequence", f32, 1>>'}}
  %r = graph.list_rank %l : (tensor<!graph.list<"sequence", f32, 1>>) -> tensor<i64>
  return
}

// -----

func.func @ls1_of_list_concat(%x: tensor<2xf32>) {
  // expected-error @+1 {{LS1: the operand must be a list, but is 'tensor<2xf32>'}}
  %r = graph.list_concat %x {axis = 0} : (tensor<2xf32>) -> tensor<?xf32, #graph.dims<"$n">>
  return
}

// -----

func.func @ls2_of_list_concat(%l: tensor<!graph.list<"sequence", f32, 1>>) {
  // expected-error @+1 {{LS2: a list of 'f32' cannot hold 'tensor<?xi64}}
  %r = graph.list_concat %l {axis = 0} : (tensor<!graph.list<"sequence", f32, 1>>) -> tensor<?xi64, #graph.dims<"$n">>
  return
}

// -----

func.func @ls1_of_list_split(%x: tensor<2xf32>) {
  // expected-error @+1 {{LS1: the result must be a list, but is 'tensor<2xf32>'}}
  %r = graph.list_split %x {axis = 0} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @ls2_of_list_split(%x: tensor<2xi64>) {
  // expected-error @+1 {{LS2: a list of 'f32' cannot hold 'tensor<2xi64>'}}
  %r = graph.list_split %x {axis = 0} : (tensor<2xi64>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @ls1_of_list_cast(%x: tensor<2xf32>) {
  // expected-error @+1 {{LS1: the operand must be a list, but is 'tensor<2xf32>'}}
  %r = graph.list_cast %x : (tensor<2xf32>) -> tensor<!graph.list<"sequence", f32, 1>>
  return
}

// -----

func.func @st1_of_string_concat(%x: tensor<2xf32>) {
  // expected-error @+1 {{ST1: x must have strings, but is 'tensor<2xf32>'}}
  %r = graph.string_concat %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @st1_of_string_split(%x: tensor<2xf32>, %d: tensor<!graph.string>) {
  // expected-error @+1 {{ST1: x must have strings, but is 'tensor<2xf32>'}}
  %p, %c = graph.string_split %x, %d : (tensor<2xf32>, tensor<!graph.string>) -> (tensor<2x?x!graph.string, #graph.dims<2, "$p">>, tensor<2xi64>)
  return
}

// -----

func.func @st1_of_string_normalize(%x: tensor<2x!graph.string>, %s: tensor<1xf32>) {
  // expected-error @+1 {{ST1: the stop words must have strings, but is 'tensor<1xf32>'}}
  %r = graph.string_normalize %x, %s {letter_case = "none"} : (tensor<2x!graph.string>, tensor<1xf32>) -> tensor<?x!graph.string, #graph.dims<"$n">>
  return
}

// -----

func.func @ax1_of_fourier(%x: tensor<8x2xf32>) {
  // expected-error @+1 {{AX1: axis 1 is outside of rank 1}}
  %r = graph.fourier %x {axis = 1, length = #graph.dims<8>} : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @rt1_of_fourier(%x: tensor<8x2xi32>) {
  // expected-error @+1 {{RT1: x must be of f32 or f64, but is 'tensor<8x2xi32>'}}
  %r = graph.fourier %x {axis = 0, length = #graph.dims<8>} : (tensor<8x2xi32>) -> tensor<8x2xi32>
  return
}

// -----

func.func @rt2_of_fourier(%x: tensor<8x2xf32>) {
  // expected-error @+1 {{RT2: the sizes of the result do not follow from the operands: 'tensor<8x2xf32>'}}
  %r = graph.fourier %x {axis = 0, length = #graph.dims<4>} : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @rt1_of_forest(%x: tensor<2x3xi32>, %w: tensor<1x1xf32>) {
  %n = graph.constant dense<[[9223372036854775807, 0]]> : tensor<1x2xi64>
  %r = graph.constant dense<[[0, 0]]> : tensor<1x2xi64>
  // expected-error @+1 {{RT1: x must be of f32 or f64, but is 'tensor<2x3xi32>'}}
  %y = graph.forest %x, %n, %r, %w : (tensor<2x3xi32>, tensor<1x2xi64>, tensor<1x2xi64>, tensor<1x1xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @rt2_of_forest(%x: tensor<2x3xf32>, %w: tensor<1x1xf32>) {
  %n = graph.constant dense<[[9223372036854775807, 0]]> : tensor<1x2xi64>
  %r = graph.constant dense<[[0, 0]]> : tensor<1x2xi64>
  // expected-error @+1 {{RT2: the sizes of the result do not follow from the operands: 'tensor<3x1xf32>'}}
  %y = graph.forest %x, %n, %r, %w : (tensor<2x3xf32>, tensor<1x2xi64>, tensor<1x2xi64>, tensor<1x1xf32>) -> tensor<3x1xf32>
  return
}

// -----

func.func @rt1_of_suppress(%b: tensor<1x5x4xf64>, %s: tensor<1x2x5xf32>, %m: tensor<i64>, %o: tensor<f32>) {
  // expected-error @+1 {{RT1: the boxes must be of 'f32' and rank 3, but is 'tensor<1x5x4xf64>'}}
  %r = graph.suppress %b, %s, %m, %o, %o : (tensor<1x5x4xf64>, tensor<1x2x5xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<?x3xi64, #graph.dims<"$n", 3>>
  return
}

// -----

func.func @rt2_of_suppress(%b: tensor<1x6x4xf32>, %s: tensor<1x2x5xf32>, %m: tensor<i64>, %o: tensor<f32>) {
  // expected-error @+1 {{RT2: the sizes of the boxes do not follow from the operands: 'tensor<1x6x4xf32>'}}
  %r = graph.suppress %b, %s, %m, %o, %o : (tensor<1x6x4xf32>, tensor<1x2x5xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<?x3xi64, #graph.dims<"$n", 3>>
  return
}

// -----

func.func @rt1_of_topk(%x: tensor<4xf32>) {
  // expected-error @+1 {{RT1: the indices must be of 'i64' and rank 1, but is 'tensor<2xi32>'}}
  %v, %i = graph.topk %x {axis = 0} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  return
}

// -----

func.func @rt1_of_unique(%x: tensor<4xf32>) {
  // expected-error @+1 {{RT1: x must be of 'f32' and rank 2, but is 'tensor<4xf32>'}}
  %f, %i, %c = graph.unique %x : (tensor<4xf32>) -> (tensor<?xi64, #graph.dims<"$n">>, tensor<4xi64>, tensor<?xi64, #graph.dims<"$n">>)
  return
}

// -----

func.func @rt2_of_unique(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{RT2: the sizes of the inverse do not follow from the operands: 'tensor<5xi64>'}}
  %f, %i, %c = graph.unique %x : (tensor<4x2xf32>) -> (tensor<?xi64, #graph.dims<"$n">>, tensor<5xi64>, tensor<?xi64, #graph.dims<"$n">>)
  return
}

// -----

func.func @rt3_of_unique(%x: tensor<4x2x!graph.scale8>) {
  // expected-error @+1 {{RT3: elements of '!graph.scale8' cannot be ordered or added}}
  %f, %i, %c = graph.unique %x : (tensor<4x2x!graph.scale8>) -> (tensor<?xi64, #graph.dims<"$n">>, tensor<4xi64>, tensor<?xi64, #graph.dims<"$n">>)
  return
}
