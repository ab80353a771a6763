// Control flow: values of outer scopes, symbols bound in each iteration, stacked results.
// RUN: heddle-opt %s --heddle-interpret | FileCheck %s

func.func @main() -> (tensor<?xi64, #graph.dims<"$if.0">>, tensor<?xi64, #graph.dims<"$carried">>,
    tensor<?xi64, #graph.dims<"$trips">>, tensor<f32>, tensor<3xf32>, tensor<2xf32>, tensor<?x2xf32, #graph.dims<"$none", 2>>) {
  %true = graph.constant dense<true> : tensor<i1>
  %trip = graph.constant dense<10> : tensor<i64>
  %four = graph.constant dense<4> : tensor<i64>
  %v = graph.constant dense<[1, 2, 3]> : tensor<3xi64>
  // CHECK: 3xi64 [1, 2, 3]
  %if = graph.if %true : (tensor<i1>) -> tensor<?xi64, #graph.dims<"$if.0">> {
    graph.yield %v : tensor<3xi64>
  } else {
    %e = graph.constant dense<[1]> : tensor<1xi64>
    graph.yield %e : tensor<1xi64>
  }
  %one = graph.constant dense<[7]> : tensor<1xi64>
  // The carried tensor grows; the loop ends before trip_count. 4 comes from outside.
  // CHECK-NEXT: 5xi64 [7, 0, 1, 2, 3]
  // CHECK-NEXT: 4xi64 [0, 1, 2, 3]
  %loop:2 = graph.loop %trip, %true, %one {scan_count = 1} : (tensor<i64>, tensor<i1>, tensor<1xi64>)
      -> (tensor<?xi64, #graph.dims<"$carried">>, tensor<?xi64, #graph.dims<"$trips">>) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %state: tensor<?xi64, #graph.dims<"$size">>):
    %three = graph.constant dense<3> : tensor<i64>
    %goes = graph.less %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %wide = graph.reshape %i : (tensor<i64>) -> tensor<1xi64>
    %grown = graph.concat %state, %wide {axis = 0} : (tensor<?xi64, #graph.dims<"$size">>, tensor<1xi64>) -> tensor<?xi64, #graph.dims<"$size + 1">>
    graph.yield %goes, %grown, %i : tensor<i1>, tensor<?xi64, #graph.dims<"$size + 1">>, tensor<i64>
  }
  %zero = graph.constant dense<0.0> : tensor<f32>
  %x = graph.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  // CHECK-NEXT: f32 6
  // CHECK-NEXT: 3xf32 [6, 5, 3]
  %scan:2 = graph.scan %zero, %x {state_count = 1, reverse_inputs = array<i64: 0>, reverse_outputs = array<i64: 0>}
      : (tensor<f32>, tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>) {
  ^bb0(%s: tensor<f32>, %e: tensor<f32>):
    %next = graph.add %s, %e : tensor<f32>
    graph.yield %next, %next : tensor<f32>, tensor<f32>
  }
  // CHECK-NEXT: 2xf32 [2, 4]
  %group = graph.group "g" : tensor<2xf32> {
    %a = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %b = graph.add %a, %a : tensor<2xf32>
    graph.yield %b : tensor<2xf32>
  }
  %never = graph.constant dense<0> : tensor<i64>
  // CHECK-NEXT: 0x2xf32 []
  %none = graph.loop %never, %true {scan_count = 1} : (tensor<i64>, tensor<i1>) -> tensor<?x2xf32, #graph.dims<"$none", 2>> {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>):
    graph.yield %c, %group : tensor<i1>, tensor<2xf32>
  }
  return %if, %loop#0, %loop#1, %scan#0, %scan#1, %group, %none : tensor<?xi64, #graph.dims<"$if.0">>, tensor<?xi64, #graph.dims<"$carried">>,
    tensor<?xi64, #graph.dims<"$trips">>, tensor<f32>, tensor<3xf32>, tensor<2xf32>, tensor<?x2xf32, #graph.dims<"$none", 2>>
}
