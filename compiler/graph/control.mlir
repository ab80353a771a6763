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
  %g = graph.group "g" {card = "c"} : tensor<2xf32> {
    %e = graph.exp %l : tensor<2xf32>
    graph.yield %e : tensor<2xf32>
  }
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

func.func @l1_scan_count(%c: tensor<i1>, %n: tensor<i64>) {
  // expected-error @+1 {{L1: scan_count must not be negative, but is -1}}
  graph.loop %n, %c, %n {scan_count = -1 : i64} : (tensor<i64>, tensor<i1>, tensor<i64>) -> () {
  ^bb0(%k: tensor<i64>, %d: tensor<i1>, %s: tensor<i64>):
    graph.yield %c : tensor<i1>
  }
  return
}

// -----

func.func @sc1_negative(%x: tensor<2xf32>) {
  // expected-error @+1 {{SC1: state_count is -1, but must be from 0 to the number of operands and of results}}
  graph.scan %x {state_count = -1} : (tensor<2xf32>) -> () {
  ^bb0(%k: tensor<f32>):
    graph.yield
  }
  return
}

// -----

func.func @sc1(%x: tensor<2xf32>) {
  // expected-error @+1 {{SC1: state_count is 1, but must be from 0 to the number of operands and of results}}
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

// -----

func.func @gr1_shape(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR1: result 0 is of 'tensor<100x100xf32>', but the body yields 'tensor<4x8xf32>'; both must be of one type}}
  %g = graph.group "g" : tensor<100x100xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return
}

// -----

func.func @gr1_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR1: result 0 is of 'tensor<4x8xi64>', but the body yields 'tensor<4x8xf32>'}}
  %g = graph.group "g" : tensor<4x8xi64> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return
}

// -----

func.func @gr1_number(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR1: a region yields 1 values, but 2 are needed}}
  %g:2 = graph.group "g" : tensor<4x8xf32>, tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return
}

// -----

func.func @gr1_nothing(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR1: a group has at least one result; remove the group of ops that nobody reads}}
  "graph.group"() <{name = "g"}> ({
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield
  }) : () -> ()
  return
}

// -----

func.func @gr2(%x: tensor<4x8xf32>) {
  %g = graph.group "outer" : tensor<4x8xf32> {
    // expected-error @+1 {{GR2: group 'inner' is in group 'outer'; no group is in a group}}
    %i = graph.group "inner" : tensor<4x8xf32> {
      %e = graph.exp %x : tensor<4x8xf32>
      graph.yield %e : tensor<4x8xf32>
    }
    graph.yield %i : tensor<4x8xf32>
  }
  return
}

// -----

func.func @gr3_empty(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR3: the body has no op beside its yield, so that there is nothing to compute; read the value itself}}
  %g = graph.group "g" : tensor<4x8xf32> { graph.yield %x : tensor<4x8xf32> }
  return
}

// -----

func.func @gr3_outer(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR3: value 1 that the body yields is made outside of it; read the value itself, not a result of the group}}
  %g:2 = graph.group "g" : tensor<4x8xf32>, tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e, %x : tensor<4x8xf32>, tensor<4x8xf32>
  }
  return
}

// -----

func.func @gr4(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR4: 'schedule' must be a dictionary with the name of a mechanism, such as {mechanism = "pointwise"}, but is {chunk = 4096 : i64}}}
  %g = graph.group "g" {schedule = {chunk = 4096}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return
}

// -----

func.func @gr6(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR6: 'device' is -1, but devices are numbered from 0 on}}
  %g = graph.group "g" {device = -1} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return
}

// -----

func.func @gr7(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR7: 'precision' is 'f64', but must be 'bf16'}}
  %g = graph.group "g" {precision = "f64"} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return
}

// -----

func.func @gr5_hosted(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR5: 'graph.cumsum' cannot be in a kernel, and so in no group; move it out of the group}}
  %g = graph.group "g" : tensor<4x8xf32> {
    %s = graph.cumsum %x {axis = 1} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    graph.yield %s : tensor<4x8xf32>
  }
  return
}

// -----

func.func @gr5_other_dialect(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{GR5: 'math.exp' cannot be in a kernel}}
  %g = graph.group "g" : tensor<4x8xf32> {
    %e = math.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return
}
