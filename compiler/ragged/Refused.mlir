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
