// What the interpreter refuses while running. Each module stands alone.
// RUN: not heddle-opt %s --split-input-file --pass-pipeline='builtin.module(heddle-interpret{limit-trips=100 limit-bytes=1000000})' 2>&1 | FileCheck %s

// CHECK: (graph.div): error: an integer is divided by zero
func.func @main() -> tensor<1xi32> {
  %x = graph.constant dense<1> : tensor<1xi32>
  %y = graph.constant dense<0> : tensor<1xi32>
  %z = graph.div %x, %y : tensor<1xi32>
  return %z : tensor<1xi32>
}

// -----

// CHECK: (graph.gather): error: index 2 is outside of -2 to 1
func.func @main() -> tensor<1xi32> {
  %x = graph.constant dense<[1, 2]> : tensor<2xi32>
  %i = graph.constant dense<2> : tensor<1xi64>
  %z = graph.gather %x, %i {axis = 0} : (tensor<2xi32>, tensor<1xi64>) -> tensor<1xi32>
  return %z : tensor<1xi32>
}

// -----

// CHECK: (graph.dynamic_reshape): error: 3 elements cannot be split by 2
func.func @main() -> tensor<?x?xi32, #graph.dims<"$a", "$b">> {
  %x = graph.constant dense<[1, 2, 3]> : tensor<3xi32>
  %s = graph.constant dense<[-1, 2]> : tensor<2xi64>
  %z = graph.dynamic_reshape %x, %s : (tensor<3xi32>, tensor<2xi64>) -> tensor<?x?xi32, #graph.dims<"$a", "$b">>
  return %z : tensor<?x?xi32, #graph.dims<"$a", "$b">>
}

// -----

// CHECK: (graph.dynamic_broadcast): error: shape [3] cannot broadcast to [2]
func.func @main() -> tensor<?xi32, #graph.dims<"$a">> {
  %x = graph.constant dense<[1, 2, 3]> : tensor<3xi32>
  %s = graph.constant dense<[2]> : tensor<1xi64>
  %z = graph.dynamic_broadcast %x, %s : (tensor<3xi32>, tensor<1xi64>) -> tensor<?xi32, #graph.dims<"$a">>
  return %z : tensor<?xi32, #graph.dims<"$a">>
}

// -----

// CHECK: (graph.loop): error: the loop runs more than 100 times
func.func @main() -> tensor<i64> {
  %true = graph.constant dense<true> : tensor<i1>
  %trip = graph.constant dense<9223372036854775807> : tensor<i64>
  %z = graph.loop %trip, %true, %trip : (tensor<i64>, tensor<i1>, tensor<i64>) -> tensor<i64> {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %s: tensor<i64>):
    graph.yield %c, %s : tensor<i1>, tensor<i64>
  }
  return %z : tensor<i64>
}

// -----

// CHECK: (graph.iota): error: a tensor of shape [1000, 1000] does not fit
func.func @main() -> tensor<1000x1000xi64> {
  %z = graph.iota {axis = 0} : () -> tensor<1000x1000xi64>
  return %z : tensor<1000x1000xi64>
}

// -----

// A symbol has one value: the range is shorter than what came before.
// CHECK: (graph.range): error: size 0 of a tensor is 2, but its type says '$a', which is 3 here
func.func @main() -> tensor<?xi64, #graph.dims<"$a">> {
  %zero = graph.constant dense<0> : tensor<i64>
  %one = graph.constant dense<1> : tensor<i64>
  %two = graph.constant dense<2> : tensor<i64>
  %three = graph.constant dense<3> : tensor<i64>
  %x = graph.range %zero, %three, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #graph.dims<"$a">>
  %y = graph.range %zero, %two, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #graph.dims<"$a">>
  return %y : tensor<?xi64, #graph.dims<"$a">>
}
