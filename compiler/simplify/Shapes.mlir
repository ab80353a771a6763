// RUN: heddle-opt %s --heddle-simplify-shapes --split-input-file | FileCheck %s

// CHECK-LABEL: @reshape_to_known_sizes
// CHECK-SAME: -> tensor<?x12xf32, #graph.dims<"n", 12>>
// CHECK-NEXT: graph.reshape {{.*}} -> tensor<?x12xf32, #graph.dims<"n", 12>>
// CHECK-NEXT: return
func.func @reshape_to_known_sizes(%x: tensor<?x3x4xf32, #graph.dims<"n", 3, 4>>)
    -> tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">> {
  %n = graph.sizes {values = #graph.dims<"n">} : () -> tensor<1xi64>
  %m = graph.constant dense<-1> : tensor<1xi64>
  %s = graph.concat %n, %m {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %y = graph.dynamic_reshape %x, %s : (tensor<?x3x4xf32, #graph.dims<"n", 3, 4>>, tensor<2xi64>)
      -> tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">>
  return %y : tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">>
}

// -----

// CHECK-LABEL: @broadcast_to_known_sizes
// CHECK: graph.broadcast %{{.*}} -> tensor<4x?x3xf32, #graph.dims<4, "n", 3>>
func.func @broadcast_to_known_sizes(%x: tensor<?x1xf32, #graph.dims<"n", 1>>)
    -> tensor<?x?x?xf32, #graph.dims<"$b.0", "$b.1", "$b.2">> {
  %s = graph.constant dense<[4, 1, 3]> : tensor<3xi64>
  %y = graph.dynamic_broadcast %x, %s : (tensor<?x1xf32, #graph.dims<"n", 1>>, tensor<3xi64>)
      -> tensor<?x?x?xf32, #graph.dims<"$b.0", "$b.1", "$b.2">>
  return %y : tensor<?x?x?xf32, #graph.dims<"$b.0", "$b.1", "$b.2">>
}

// -----

// CHECK-LABEL: @slice_with_known_bounds
// CHECK: graph.slice %{{.*}} {starts = #graph.dims<"min(1, n)", 9>, steps = array<i64: 2, -1>}
// CHECK-SAME: -> tensor<?x10xf32, #graph.dims<"(max(-min(1, n) + n, 0) + 1) floordiv 2", 10>>
func.func @slice_with_known_bounds(%x: tensor<?x10xf32, #graph.dims<"n", 10>>)
    -> tensor<?x?xf32, #graph.dims<"$s.0", "$s.1">> {
  %starts = graph.constant dense<[1, -1]> : tensor<2xi64>
  %ends = graph.constant dense<[9223372036854775807, -9223372036854775808]> : tensor<2xi64>
  %steps = graph.constant dense<[2, -1]> : tensor<2xi64>
  %y = graph.dynamic_slice %x, %starts, %ends, %steps {axes = array<i64: 0, 1>}
      : (tensor<?x10xf32, #graph.dims<"n", 10>>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>)
      -> tensor<?x?xf32, #graph.dims<"$s.0", "$s.1">>
  return %y : tensor<?x?xf32, #graph.dims<"$s.0", "$s.1">>
}

// -----

// CHECK-LABEL: @range_of_known_length
// CHECK: graph.iota {axis = 0 : i64} : () -> tensor<?xi64, #graph.dims<"n">>
func.func @range_of_known_length(%x: tensor<?xf32, #graph.dims<"n">>)
    -> tensor<?xi64, #graph.dims<"$r.0">> {
  %zero = graph.constant dense<0> : tensor<i64>
  %one = graph.constant dense<1> : tensor<i64>
  %n = graph.sizes {values = #graph.dims<"n">} : () -> tensor<i64>
  %y = graph.range %zero, %n, %one : (tensor<i64>, tensor<i64>, tensor<i64>)
      -> tensor<?xi64, #graph.dims<"$r.0">>
  return %y : tensor<?xi64, #graph.dims<"$r.0">>
}

// -----

// CHECK-LABEL: @takes_the_known_branch
// CHECK-SAME: -> tensor<?xf32, #graph.dims<"n">>
// CHECK-NEXT: %[[Y:.*]] = graph.exp
// CHECK-NEXT: return %[[Y]]
func.func @takes_the_known_branch(%x: tensor<?xf32, #graph.dims<"n">>)
    -> tensor<?xf32, #graph.dims<"$if.0">> {
  %n = graph.sizes {values = #graph.dims<"n">} : () -> tensor<i64>
  %c = graph.equal %n, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %y = graph.if %c : (tensor<i1>) -> (tensor<?xf32, #graph.dims<"$if.0">>) {
    %a = graph.exp %x : tensor<?xf32, #graph.dims<"n">>
    graph.yield %a : tensor<?xf32, #graph.dims<"n">>
  } else {
    %b = graph.constant dense<0.0> : tensor<3xf32>
    graph.yield %b : tensor<3xf32>
  }
  return %y : tensor<?xf32, #graph.dims<"$if.0">>
}

// -----

// CHECK-LABEL: @leaves_what_only_the_run_knows
// CHECK: graph.dynamic_reshape
func.func @leaves_what_only_the_run_knows(%x: tensor<12xf32>, %s: tensor<2xi64>)
    -> tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">> {
  %y = graph.dynamic_reshape %x, %s : (tensor<12xf32>, tensor<2xi64>)
      -> tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">>
  return %y : tensor<?x?xf32, #graph.dims<"$r.0", "$r.1">>
}
