// Movement ops against values written by hand; symbols are bound by the arguments and by ops.
// RUN: heddle-opt %s --pass-pipeline='builtin.module(heddle-interpret{sizes=n=2})' | FileCheck %s

!x = tensor<?x3xf32, #graph.dims<"n", 3>>
func.func @main(%x: !x) -> (tensor<3x?xf32, #graph.dims<3, "n">>, tensor<?xf32, #graph.dims<"3*n">>,
    tensor<2xi64>, tensor<2x?x3xf32, #graph.dims<2, "n", 3>>, tensor<?x2xf32, #graph.dims<"n", 2>>,
    tensor<?x?xf32, #graph.dims<"$slice.0", "$slice.1">>, tensor<?x3xf32, #graph.dims<"2*n", 3>>,
    tensor<?x6xf32, #graph.dims<"n + 1", 6>>, tensor<1x5xf32>, tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">>,
    tensor<?x?xf32, #graph.dims<"$b.0", "$b.1">>, tensor<?xi64, #graph.dims<"$range.0">>,
    tensor<?x2xi64, #graph.dims<"$k.0", 2>>, tensor<2x3xi64>, tensor<3x2xi64>, tensor<?x1xf32, #graph.dims<"n", 1>>) {
  // CHECK: 3x2xf32 {{\[\[}}0, 3], [1, 4], [2, 5]]
  %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (!x) -> tensor<3x?xf32, #graph.dims<3, "n">>
  // CHECK-NEXT: 6xf32 [0, 1, 2, 3, 4, 5]
  %flat = graph.reshape %x : (!x) -> tensor<?xf32, #graph.dims<"3*n">>
  // CHECK-NEXT: 2xi64 [2, 5]
  %sizes = graph.sizes {values = #graph.dims<"n", "2*n + 1">} : () -> tensor<2xi64>
  %sizes2 = graph.reshape %sizes : (tensor<2xi64>) -> tensor<2xi64>
  // CHECK-NEXT: 2x2x3xf32 {{\[\[\[}}0, 1, 2], [3, 4, 5]], {{\[\[}}0, 1, 2], [3, 4, 5]]]
  %b = graph.broadcast %x : (!x) -> tensor<2x?x3xf32, #graph.dims<2, "n", 3>>
  // CHECK-NEXT: 2x2xf32 {{\[\[}}2, 0], [5, 3]]
  %s = graph.slice %x {starts = #graph.dims<0, 2>, steps = array<i64: 1, -2>} : (!x) -> tensor<?x2xf32, #graph.dims<"n", 2>>
  %starts = graph.constant dense<[-1, 100]> : tensor<2xi64>
  %ends = graph.constant dense<[9223372036854775807, -9223372036854775808]> : tensor<2xi64>
  %steps = graph.constant dense<[1, -1]> : tensor<2xi64>
  // CHECK-NEXT: 1x3xf32 {{\[\[}}5, 4, 3]]
  %ds = graph.dynamic_slice %x, %starts, %ends, %steps {axes = array<i64: 0, 1>}
    : (!x, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32, #graph.dims<"$slice.0", "$slice.1">>
  // CHECK-NEXT: 4x3xf32 {{\[\[}}0, 1, 2], [3, 4, 5], [0, 1, 2], [3, 4, 5]]
  %c = graph.concat %x, %x {axis = 0} : (!x, !x) -> tensor<?x3xf32, #graph.dims<"2*n", 3>>
  %zero = graph.constant dense<9.0> : tensor<f32>
  // CHECK-NEXT: 3x6xf32 {{\[\[}}9, 9, 9, 9, 9, 9], [9, 9, 0, 1, 2, 9], [9, 9, 3, 4, 5, 9]]
  %p = graph.pad %x, %zero {low = #graph.dims<1, 2>, high = #graph.dims<0, 1>}
    : (!x, tensor<f32>) -> tensor<?x6xf32, #graph.dims<"n + 1", 6>>
  %row = graph.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>
  // CHECK-NEXT: 1x5xf32 {{\[\[}}2, 1, 2, 3, 2]]
  %reflect = graph.pad %row, %zero {low = #graph.dims<0, 1>, high = #graph.dims<0, 1>, mode = "reflect"}
    : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x5xf32>
  %shape = graph.constant dense<[-1, 2]> : tensor<2xi64>
  // CHECK-NEXT: 3x2xf32 {{\[\[}}0, 1], [2, 3], [4, 5]]
  %r = graph.dynamic_reshape %x, %shape : (!x, tensor<2xi64>) -> tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">>
  %wide = graph.constant dense<[2, 1]> : tensor<2xi64>
  // CHECK-NEXT: 2x3xf32 {{\[\[}}1, 2, 3], [1, 2, 3]]
  %db = graph.dynamic_broadcast %row, %wide : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x?xf32, #graph.dims<"$b.0", "$b.1">>
  %one = graph.constant dense<1> : tensor<i64>
  %eight = graph.constant dense<8> : tensor<i64>
  %three = graph.constant dense<3> : tensor<i64>
  // CHECK-NEXT: 3xi64 [1, 4, 7]
  %range = graph.range %one, %eight, %three : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #graph.dims<"$range.0">>
  graph.bind_sizes %three {symbols = #graph.dims<"$k.0">, message = "a size is %lld"} : tensor<i64>
  // CHECK-NEXT: 3x2xi64 {{\[\[}}0, 0], [1, 1], [2, 2]]
  %bound = graph.iota {axis = 0} : () -> tensor<?x2xi64, #graph.dims<"$k.0", 2>>
  // CHECK-NEXT: 2x3xi64 {{\[\[}}0, 1, 2], [0, 1, 2]]
  %iota = graph.iota {axis = 1} : () -> tensor<2x3xi64>
  %lengths = graph.constant dense<[3, 1]> : tensor<2xi64>
  %m = graph.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64>
  // CHECK-NEXT: 3x2xi64 {{\[\[}}5, 2], [3, 4], [1, 6]]
  %reverse = graph.reverse_sequence %m, %lengths {time_axis = 0, batch_axis = 1} : (tensor<3x2xi64>, tensor<2xi64>) -> tensor<3x2xi64>
  // CHECK-NEXT: 2x1xf32 {{\[\[}}1], [4]]
  %crop = graph.pad %x, %zero {low = #graph.dims<0, -1>, high = #graph.dims<0, -1>}
    : (!x, tensor<f32>) -> tensor<?x1xf32, #graph.dims<"n", 1>>
  return %t, %flat, %sizes2, %b, %s, %ds, %c, %p, %reflect, %r, %db, %range, %bound, %iota, %reverse, %crop
    : tensor<3x?xf32, #graph.dims<3, "n">>, tensor<?xf32, #graph.dims<"3*n">>,
    tensor<2xi64>, tensor<2x?x3xf32, #graph.dims<2, "n", 3>>, tensor<?x2xf32, #graph.dims<"n", 2>>,
    tensor<?x?xf32, #graph.dims<"$slice.0", "$slice.1">>, tensor<?x3xf32, #graph.dims<"2*n", 3>>,
    tensor<?x6xf32, #graph.dims<"n + 1", 6>>, tensor<1x5xf32>, tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">>,
    tensor<?x?xf32, #graph.dims<"$b.0", "$b.1">>, tensor<?xi64, #graph.dims<"$range.0">>,
    tensor<?x2xi64, #graph.dims<"$k.0", 2>>, tensor<2x3xi64>, tensor<3x2xi64>, tensor<?x1xf32, #graph.dims<"n", 1>>
}
