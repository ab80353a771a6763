// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// C that is none: clang says where.
// CHECK: {{.*}}/Inputs/no_c.c:2:68: error: expected ';' after return statement
// CHECK: {{.*}}/Inputs/no_c.c:4:28: error: call to undeclared function 'heddle_raed_a'; ISO C99 and later do not support implicit function declarations [-Wimplicit-function-declaration]
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group from "Inputs/no_c.c" : !transform.any_op
    transform.yield
  }
  func.func @example(%x: tensor<?x8xf32, #graph.dims<"n", 8>>, %w: tensor<8x4xf32> {heddle.constant})
      -> tensor<?x4xf32, #graph.dims<"n", 4>> {
    %y = graph.matmul %x, %w : (tensor<?x8xf32, #graph.dims<"n", 8>>, tensor<8x4xf32>) -> tensor<?x4xf32, #graph.dims<"n", 4>>
    return %y : tensor<?x4xf32, #graph.dims<"n", 4>>
  }
}
