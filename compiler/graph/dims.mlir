// Size expressions in types: their canonical form, and what the attribute refuses.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file | FileCheck %s

// CHECK: #graph.dims<"2*h + 1", "(h + 1) floordiv 2", "max(h, w)", "h mod 3", 4>
func.func private @canonical(tensor<?x?x?x?x4xf32, #graph.dims<"1 + h + h", "(h - 1) floordiv 2 + 1", "max(w, h)", "(4*h) mod 3", 4>>)

// -----

// CHECK: #graph.dims<"2*batch*seq", "$range.0">
func.func private @products(tensor<?x?xf32, #graph.dims<"seq*2*batch", "$range.0">>)

// -----

// expected-error @+1 {{'h +' is not a size expression}}
func.func private @text(tensor<?xf32, #graph.dims<"h +">>)

// -----

// expected-error @+1 {{#graph.dims has 2 sizes, the tensor has rank 1}}
func.func private @rank(tensor<?xf32, #graph.dims<"h", 3>>)

// -----

// expected-error @+1 {{#graph.dims says '3' where the shape of the tensor says otherwise}}
func.func private @number(tensor<?x4xf32, #graph.dims<"h", 3>>)

// -----

// expected-error @+1 {{#graph.dims says 'h' where the shape of the tensor says otherwise}}
func.func private @name(tensor<4xf32, #graph.dims<"h">>)

// -----

func.func @nameless(%x: tensor<?x?xf32>) {
  // expected-error @+1 {{operand #0 must be ranked tensor whose dynamic sizes have names, as #graph.dims gives them (TN1), but got 'tensor<?x?xf32>'}}
  %y = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @nameless_result(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{result #0 must be ranked tensor whose dynamic sizes have names, as #graph.dims gives them (TN1), but got 'tensor<?xf32>'}}
  %y = graph.reshape %x : (tensor<2x3xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @nameless_values(%x: tensor<?xf32>) {
  // expected-error @+1 {{operand #0 must be variadic of ranked tensor whose dynamic sizes have names, as #graph.dims gives them (TN1), but got 'tensor<?xf32>'}}
  %y = graph.concat %x, %x {axis = 0} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return
}
