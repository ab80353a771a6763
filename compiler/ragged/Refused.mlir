// What is refused, and why.
// RUN: not heddle-opt %s --heddle-ragged="rows=batch:seq=lengths" --split-input-file 2>&1 | FileCheck %s

// CHECK: node 'mix' (graph.reduce_sum): error: --ragged batch:seq: what it computes of a row depends on other rows, or on padding, in a way that cannot be separated; without --ragged the model is computed with its padding
func.func @main(%x: tensor<?x?xf32, #graph.dims<"batch", "seq">> {graph.name = "x"})
    -> tensor<?xf32, #graph.dims<"seq">> {
  %s = graph.reduce_sum %x {axes = array<i64: 0>} : (tensor<?x?xf32, #graph.dims<"batch", "seq">>) -> tensor<?xf32, #graph.dims<"seq">> loc("mix")
  return %s : tensor<?xf32, #graph.dims<"seq">>
}

// -----

// CHECK: node 'index' (graph.iota): error: {{.*}} the index of a row is known only in the whole batch
func.func @main(%x: tensor<?x?xi64, #graph.dims<"batch", "seq">> {graph.name = "x"})
    -> tensor<?x?xi64, #graph.dims<"batch", "seq">> {
  %i = graph.iota {axis = 0 : i64} : () -> tensor<?x?xi64, #graph.dims<"batch", "seq">> loc("index")
  %s = graph.add %x, %i : tensor<?x?xi64, #graph.dims<"batch", "seq">> loc("number")
  return %s : tensor<?x?xi64, #graph.dims<"batch", "seq">>
}

// -----

// CHECK: node 'sum' (graph.cumsum): error: {{.*}} cannot be separated
func.func @main(%x: tensor<?x?xf32, #graph.dims<"batch", "seq">> {graph.name = "x"})
    -> tensor<?x?xf32, #graph.dims<"batch", "seq">> {
  %s = graph.cumsum %x {axis = 1 : i64} : (tensor<?x?xf32, #graph.dims<"batch", "seq">>) -> tensor<?x?xf32, #graph.dims<"batch", "seq">> loc("sum")
  return %s : tensor<?x?xf32, #graph.dims<"batch", "seq">>
}

// -----

// CHECK: node 'some' (graph.gather): error: {{.*}} a size that it reads or makes is known only in the middle of the run
func.func @main(%x: tensor<?x?xf32, #graph.dims<"batch", "seq">> {graph.name = "x"}, %i: tensor<2xi1> {graph.name = "i"})
    -> tensor<?x?xf32, #graph.dims<"batch", "found">> {
  %p = graph.nonzero %i : (tensor<2xi1>) -> tensor<1x?xi64, #graph.dims<1, "found">>
  %f = graph.reshape %p : (tensor<1x?xi64, #graph.dims<1, "found">>) -> tensor<?xi64, #graph.dims<"found">>
  %g = graph.gather %x, %f {axis = 1 : i64} : (tensor<?x?xf32, #graph.dims<"batch", "seq">>, tensor<?xi64, #graph.dims<"found">>) -> tensor<?x?xf32, #graph.dims<"batch", "found">> loc("some")
  return %g : tensor<?x?xf32, #graph.dims<"batch", "found">>
}

// -----

// After the pooling a row is what is left of one, and still only that.
// CHECK: node 'all' (graph.reduce_sum): error: {{.*}} it computes of several rows at once
func.func @main(%x: tensor<?x?xf32, #graph.dims<"batch", "seq">> {graph.name = "x"})
    -> tensor<?xf32, #graph.dims<"batch">> {
  %s = graph.reduce_sum %x {axes = array<i64: 1>} : (tensor<?x?xf32, #graph.dims<"batch", "seq">>) -> tensor<?xf32, #graph.dims<"batch">>
  %a = graph.reduce_sum %s {axes = array<i64: 0>, keep_dims = true} : (tensor<?xf32, #graph.dims<"batch">>) -> tensor<1xf32> loc("all")
  %b = graph.broadcast %a : (tensor<1xf32>) -> tensor<?xf32, #graph.dims<"batch">>
  return %b : tensor<?xf32, #graph.dims<"batch">>
}

// -----

// CHECK: node 'steps' (graph.scan): error: {{.*}} a recurrence whose steps depend on the size of the padded batch
func.func @main(%x: tensor<?x?xf32, #graph.dims<"seq", "batch">> {graph.name = "x"}, %s: tensor<?xf32, #graph.dims<"batch">> {graph.name = "s"})
    -> tensor<?xf32, #graph.dims<"batch">> {
  %n = graph.sizes {values = #graph.dims<"seq">} : () -> tensor<f32>
  %r = graph.scan %s, %x {state_count = 1 : i64} : (tensor<?xf32, #graph.dims<"batch">>, tensor<?x?xf32, #graph.dims<"seq", "batch">>) -> tensor<?xf32, #graph.dims<"batch">> {
  ^bb0(%a: tensor<?xf32, #graph.dims<"batch">>, %b: tensor<?xf32, #graph.dims<"batch">>):
    %w = graph.broadcast %n : (tensor<f32>) -> tensor<?xf32, #graph.dims<"batch">>
    %c = graph.add %a, %w : tensor<?xf32, #graph.dims<"batch">>
    graph.yield %c : tensor<?xf32, #graph.dims<"batch">>
  } loc("steps")
  return %r : tensor<?xf32, #graph.dims<"batch">>
}
