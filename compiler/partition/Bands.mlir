// A choice by one side of a diagonal has a mask of its own, in its kernel, whoever else reads the
// same; other masks stay where they are.
// RUN: heddle-opt %s --heddle-partition=cards --split-input-file | FileCheck %s

// A mask of two products, as those of layers share one: each leaves out what is 0.
// CHECK-LABEL: func.func @shared
// CHECK: graph.group {{.*}} {mechanism = "contraction"}
// CHECK: graph.iota
// CHECK: graph.greater_equal
// CHECK: graph.select
// CHECK: graph.matmul
// CHECK: graph.group {{.*}} {mechanism = "contraction"}
// CHECK: graph.iota
// CHECK: graph.less_equal
// CHECK: graph.select
// CHECK: graph.matmul
// CHECK-NOT: graph.group
func.func @shared(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = graph.constant dense<0.0> : tensor<64x64xf32>
  %i = graph.iota {axis = 0} : () -> tensor<64x64xi32>
  %j = graph.iota {axis = 1} : () -> tensor<64x64xi32>
  %m = graph.less_equal %j, %i : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi1>
  %t = graph.select %m, %a, %zero : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = graph.matmul %t, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %u = graph.select %m, %p, %zero : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = graph.matmul %u, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %q : tensor<64x64xf32>
}

// -----

// A constant mask is not read.
// CHECK-LABEL: func.func @constant
// CHECK-NOT: graph.constant dense<{{.*}}> : tensor<3x3xi1>
// CHECK: graph.iota
// CHECK: graph.select
func.func @constant(%a: tensor<3x3xf32>, %b: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %m = graph.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  %t = graph.select %m, %a, %b : (tensor<3x3xi1>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %t : tensor<3x3xf32>
}

// -----

// No band: it is computed once.
// CHECK-LABEL: func.func @other
// CHECK-COUNT-1: graph.equal
// CHECK-NOT: graph.equal
func.func @other(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %i = graph.iota {axis = 0} : () -> tensor<64x64xi32>
  %j = graph.iota {axis = 1} : () -> tensor<64x64xi32>
  %m = graph.equal %j, %i : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi1>
  %t = graph.select %m, %a, %b : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = graph.select %m, %b, %t : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}

// -----

// A mask by a place that each row has, as those of tokens after others: each choice compares anew,
// and the places are computed once.
// CHECK-LABEL: func.func @places
// CHECK: graph.group {{.*}} {mechanism = "pointwise"} : tensor<64x1xi64>
// CHECK: graph.group
// CHECK: graph.less_equal
// CHECK: graph.select
// CHECK: graph.group {{.*}} {mechanism = "contraction"}
// CHECK: graph.less_equal
// CHECK: graph.matmul
// CHECK: graph.select
func.func @places(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %at: tensor<64x1xi64>) -> tensor<64x64xf32> {
  %zero = graph.constant dense<0.0> : tensor<64x64xf32>
  %sum = graph.add %at, %at : tensor<64x1xi64>
  %rows = graph.broadcast %sum : (tensor<64x1xi64>) -> tensor<64x64xi64>
  %j = graph.iota {axis = 0} : () -> tensor<64xi64>
  %columns = graph.broadcast %j : (tensor<64xi64>) -> tensor<64x64xi64>
  %m = graph.less_equal %columns, %rows : (tensor<64x64xi64>, tensor<64x64xi64>) -> tensor<64x64xi1>
  %t = graph.select %m, %a, %zero : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = graph.matmul %t, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %u = graph.select %m, %p, %zero : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = graph.matmul %u, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %q : tensor<64x64xf32>
}
