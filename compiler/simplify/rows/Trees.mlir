// RUN: heddle-opt %s --heddle-simplify-trees | FileCheck %s

// 2 * 0.5 is the weight of the first leaf; that of a node that is none takes a leaf's.
// CHECK-LABEL: @weights
// CHECK: %[[W:.*]] = graph.constant dense<{{\[\[}}1.000000e+00], [1.000000e+00], [6.000000e+00]]>
// CHECK: %[[F:.*]] = graph.forest %arg0, %{{.*}}, %{{.*}}, %[[W]]
// CHECK-NEXT: return %[[F]]
func.func @weights(%x: tensor<3x2xf32>) -> tensor<3x1xf32> {
  %n = graph.constant dense<[[0, 4294967297], [9223372036854775807, 4294967296], [9223372036854775807, 8589934592]]> : tensor<3x2xi64>
  %r = graph.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %w = graph.constant dense<[[7.0], [0.5], [3.0]]> : tensor<3x1xf32>
  %t = graph.constant dense<2.0> : tensor<3x1xf32>
  %f = graph.forest %x, %n, %r, %w : (tensor<3x2xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %y = graph.mul %f, %t : tensor<3x1xf32>
  return %y : tensor<3x1xf32>
}

// The second tree begins after the three nodes of the first.
// CHECK-LABEL: @sum
// CHECK-DAG: graph.constant dense<{{\[\[}}0, 4294967297], [9223372036854775807, 4294967296], [9223372036854775807, 8589934592], [0, 17179869184], [9223372036854775807, 17179869184], [9223372036854775807, 21474836480]]>
// CHECK-DAG: graph.constant dense<{{\[\[}}0, 1], [3, 1]]>
// CHECK: %[[F:.*]] = graph.forest %arg0
// CHECK-NEXT: return %[[F]]
func.func @sum(%x: tensor<3x2xf32>) -> tensor<3x1xf32> {
  %n = graph.constant dense<[[0, 4294967297], [9223372036854775807, 4294967296], [9223372036854775807, 8589934592]]> : tensor<3x2xi64>
  %m = graph.constant dense<[[0, 4294967296], [9223372036854775807, 4294967296], [9223372036854775807, 8589934592]]> : tensor<3x2xi64>
  %r = graph.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %w = graph.constant dense<[[7.0], [0.5], [3.0]]> : tensor<3x1xf32>
  %f = graph.forest %x, %n, %r, %w : (tensor<3x2xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %g = graph.forest %x, %m, %r, %w : (tensor<3x2xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %y = graph.add %f, %g : tensor<3x1xf32>
  return %y : tensor<3x1xf32>
}

// Two values that follow from the leaf would be two walks.
// CHECK-LABEL: @two
// CHECK: graph.forest
// CHECK-NOT: graph.forest
// CHECK: graph.mul
// CHECK: graph.exp
func.func @two(%x: tensor<3x2xf32>) -> (tensor<3x1xf32>, tensor<3x1xf32>) {
  %n = graph.constant dense<[[0, 4294967297], [9223372036854775807, 4294967296], [9223372036854775807, 8589934592]]> : tensor<3x2xi64>
  %r = graph.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %w = graph.constant dense<[[7.0], [0.5], [3.0]]> : tensor<3x1xf32>
  %t = graph.constant dense<2.0> : tensor<3x1xf32>
  %f = graph.forest %x, %n, %r, %w : (tensor<3x2xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %y = graph.mul %f, %t : tensor<3x1xf32>
  %z = graph.exp %f : tensor<3x1xf32>
  return %y, %z : tensor<3x1xf32>, tensor<3x1xf32>
}

// A leaf whose number is in no table is the run's error.
// CHECK-LABEL: @outside
// CHECK: graph.gather
func.func @outside(%x: tensor<3x2xf32>) -> tensor<3x1xf32> {
  %n = graph.constant dense<[[0, 4294967297], [9223372036854775807, 4294967296], [9223372036854775807, 8589934592]]> : tensor<3x2xi64>
  %r = graph.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %w = graph.constant dense<[[0.0], [0.0], [2.0]]> : tensor<3x1xf32>
  %t = graph.constant dense<[1.5, 2.5]> : tensor<2xf32>
  %f = graph.forest %x, %n, %r, %w : (tensor<3x2xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %i = graph.cast %f : (tensor<3x1xf32>) -> tensor<3x1xi64>
  %y = graph.gather %t, %i {axis = 0 : i64} : (tensor<2xf32>, tensor<3x1xi64>) -> tensor<3x1xf32>
  return %y : tensor<3x1xf32>
}

// A tree that reads 2 of 12 columns does not make a run look at all.
// CHECK-LABEL: @columns
// CHECK: %[[Y:.*]] = graph.gather %arg0
// CHECK: graph.forest %[[Y]]
func.func @columns(%x: tensor<3x12xf32>) -> tensor<3x1xf32> {
  %n = graph.constant dense<[[0, 4294967297], [9223372036854775807, 4294967296], [9223372036854775807, 8589934592]]> : tensor<3x2xi64>
  %r = graph.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %w = graph.constant dense<[[7.0], [0.5], [3.0]]> : tensor<3x1xf32>
  %c = graph.constant dense<[8, 3]> : tensor<2xi64>
  %y = graph.gather %x, %c {axis = 1 : i64} : (tensor<3x12xf32>, tensor<2xi64>) -> tensor<3x2xf32>
  %f = graph.forest %y, %n, %r, %w : (tensor<3x2xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<3x1xf32>) -> tensor<3x1xf32>
  return %f : tensor<3x1xf32>
}

// Rows that differ in what is added have no weight in common; a branch reads the number of the leaf.
// CHECK-LABEL: @apart
// CHECK: %[[F:.*]] = graph.forest
// CHECK: graph.add %[[F]]
// CHECK-LABEL: @branch
// CHECK: %[[F:.*]] = graph.forest
// CHECK: graph.if
// CHECK: graph.neg %[[F]]
func.func @apart(%x: tensor<3x2xf32>) -> tensor<3x1xf32> {
  %n = graph.constant dense<[[0, 4294967297], [9223372036854775807, 4294967296], [9223372036854775807, 8589934592]]> : tensor<3x2xi64>
  %r = graph.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %w = graph.constant dense<[[7.0], [0.5], [3.0]]> : tensor<3x1xf32>
  %t = graph.constant dense<[[2.0], [3.0], [5.0]]> : tensor<3x1xf32>
  %f = graph.forest %x, %n, %r, %w : (tensor<3x2xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %y = graph.add %f, %t : tensor<3x1xf32>
  return %y : tensor<3x1xf32>
}
func.func @branch(%x: tensor<3x2xf32>, %c: tensor<i1>) -> (tensor<3x1xf32>, tensor<3x1xf32>) {
  %n = graph.constant dense<[[0, 4294967297], [9223372036854775807, 4294967296], [9223372036854775807, 8589934592]]> : tensor<3x2xi64>
  %r = graph.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %w = graph.constant dense<[[7.0], [0.5], [3.0]]> : tensor<3x1xf32>
  %f = graph.forest %x, %n, %r, %w : (tensor<3x2xf32>, tensor<3x2xi64>, tensor<1x2xi64>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %y = graph.exp %f : tensor<3x1xf32>
  %z = graph.if %c : (tensor<i1>) -> tensor<3x1xf32> {
    %a = graph.neg %f : tensor<3x1xf32>
    graph.yield %a : tensor<3x1xf32>
  } else {
    graph.yield %f : tensor<3x1xf32>
  }
  return %y, %z : tensor<3x1xf32>, tensor<3x1xf32>
}
