// What mechanisms hold schedules to: each label of Schedules.h.
// RUN: heddle-opt %s --heddle-verify --split-input-file --verify-diagnostics

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %g = graph.group "g" {schedule = {mechanism = "pointwise", chunk = 64 : i64}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %g = graph.group "g" {schedule = {mechanism = "pointwise"}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %g = graph.group "g" {schedule = {mechanism = "kernel.nest", anything = -3 : i64, source = "", code = "x"}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %g = graph.group "g" {schedule = {mechanism = "pointwise", chunk = 64 : i64, versions = [{mechanism = "pointwise", chunk = 1 : i64, when = {"2*n" = 32 : i64}}]}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK1: there is no mechanism 'pointwize'; known: pointwise, place, rows, contraction,}}
  %g = graph.group "g" {schedule = {mechanism = "pointwize"}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK1: there is no mechanism 'several'; known: pointwise, place, rows, contraction,}}
  %g = graph.group "g" {mechanism = "several"} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK2: mechanism 'pointwise' has no knob 'chonk'; its knobs: chunk}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", chonk = 64 : i64}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK2: mechanism 'serial' has no knob 'chunk'; its knobs: none}}
  %g = graph.group "g" {schedule = {mechanism = "serial", chunk = 64 : i64}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK2: 'source' of a kernel is text, but is 3 : i64}}
  %g = graph.group "g" {schedule = {mechanism = "kernel.nest", source = 3 : i64}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK3: knob 'chunk' must be an i64 from 1 to 2147483647, but is -5 : i64; leave it out, and lower finds a number}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", chunk = -5 : i64}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK3: knob 'chunk' must be an i64 from 1 to 2147483647, but is 0 : i64; leave it out, and lower finds a number}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", chunk = 0 : i64}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK3: knob 'chunk' must be an i64 from 1 to 2147483647, but is 2147483648 : i64; leave it out, and lower finds a number}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", chunk = 2147483648 : i64}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK3: knob 'n' must be an i64 from 1 to 256, but is 1000003 : i64; leave it out, and lower finds a number}}
  %g = graph.group "g" {schedule = {mechanism = "contraction", m = 256 : i64, n = 1000003 : i64}} : tensor<4x8xf32> {
    %p = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    graph.yield %p : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK3: knob 'chunk' must be an i64 from 1 to 2147483647, but is 64 : i32; leave it out, and lower finds a number}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", chunk = 64 : i32}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK3: knob 'chunk' must be an i64 from 1 to 2147483647, but is "64"; leave it out, and lower finds a number}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", chunk = "64"}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK3: knob 'width' must be an i64, but is 1.000000e+00 : f32}}
  %g = graph.group "g" {schedule = {mechanism = "kernel.nest", width = 1.0 : f32}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK4: 'versions' must be a list of schedules, but is 1 : i64}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", versions = 1 : i64}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK4: a version must be a schedule of 'pointwise', as the group's, but is {mechanism = "rows",}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", versions = [{mechanism = "rows", when = {n = 4 : i64}}]}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK4: a version says under 'when' what sizes are at most, such as {batch = 4 : i64}, but this is {mechanism = "pointwise"}}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", versions = [{mechanism = "pointwise"}]}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK4: a version says under 'when' what sizes are at most}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", versions = [{mechanism = "pointwise", when = {"2*" = 4 : i64}}]}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{SK2: mechanism 'pointwise' has no knob 'm'}}
  %g = graph.group "g" {schedule = {mechanism = "pointwise", versions = [{mechanism = "pointwise", m = 8 : i64, when = {n = 4 : i64}}]}} : tensor<4x8xf32> {
    %e = graph.exp %x : tensor<4x8xf32>
    graph.yield %e : tensor<4x8xf32>
  }
  return %g : tensor<4x8xf32>
}
