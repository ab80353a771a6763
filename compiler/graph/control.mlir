// Control flow: round trip, and each constraint label once.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%c: tensor<i1>, %n: tensor<i64>, %x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK: graph.if %{{.*}} : (tensor<i1>) -> tensor<2xf32> {
  // CHECK: } else {
  %i = graph.if %c : (tensor<i1>) -> tensor<2xf32> { graph.yield %x : tensor<2xf32> } else { graph.yield %x : tensor<2xf32> }
  // CHECK: graph.loop %{{.*}}, %{{.*}}, %{{.*}} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32> {
  %l = graph.loop %n, %c, %i : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%k: tensor<i64>, %b: tensor<i1>, %s: tensor<2xf32>):
    graph.yield %b, %s : tensor<i1>, tensor<2xf32>
  }
  // CHECK: graph.group "g" {card = "c"} : tensor<2xf32> {
  %g = graph.group "g" {card = "c"} : tensor<2xf32> { graph.yield %l : tensor<2xf32> }
  return %g : tensor<2xf32>
}

// -----

func.func @i2(%c: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{I2: a region yields 0 values, but 1 are needed}}
  %i = graph.if %c : (tensor<i1>) -> tensor<2xf32> { graph.yield } else { graph.yield %x : tensor<2xf32> }
  return
}

// -----

func.func @i2_type(%c: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{I2: a branch yields 'tensor<2xf32>' for a result of 'tensor<2xi32>'}}
  %i = graph.if %c : (tensor<i1>) -> tensor<2xi32> { graph.yield %x : tensor<2xf32> } else { graph.yield %x : tensor<2xf32> }
  return
}

// -----

func.func @l1(%c: tensor<i1>, %n: tensor<i64>) {
  // expected-error @+1 {{L1: the region needs 2 arguments}}
  graph.loop %n, %c : (tensor<i64>, tensor<i1>) -> () {
  ^bb0(%k: tensor<i64>):
    graph.yield %c : tensor<i1>
  }
  return
}

// -----

func.func @sc1(%x: tensor<2xf32>) {
  // expected-error @+1 {{SC1: state_count is larger than the number of operands or results}}
  graph.scan %x {state_count = 1} : (tensor<2xf32>) -> () {
  ^bb0(%k: tensor<f32>):
    graph.yield
  }
  return
}

// -----

func.func @i1(%c: tensor<2xi1>) {
  // expected-error @+1 {{I1: the condition must be one element of i1, but is 'tensor<2xi1>'}}
  graph.if %c : (tensor<2xi1>) -> () { graph.yield } else { graph.yield }
  return
}
