// Ragged ops in the reference: an op, once for each row. Of x = 0, 1, 2 ... the rows are 0 1 2 3 4,
// 5 6 7 8 9 and 10 to 14; their lengths are 0, 1 and 2.
// RUN: heddle-opt %s --heddle-ragged="rows=batch:seq=lengths" --heddle-interpret="fill=iota sizes=batch=3,seq=5" --split-input-file | FileCheck %s

// CHECK: 3x5xf32 {{\[\[}}0, 0, 0, 0, 0], [10, 0, 0, 0, 0], [20, 22, 0, 0, 0]]
// CHECK-NEXT: 3xf32 [0, 5, 21]
func.func @main(%x: tensor<?x?xf32, #graph.dims<"batch", "seq">> {graph.name = "x"})
    -> (tensor<?x?xf32, #graph.dims<"batch", "seq">>, tensor<?xf32, #graph.dims<"batch">>) {
  %y = graph.add %x, %x : tensor<?x?xf32, #graph.dims<"batch", "seq">>
  %s = graph.reduce_sum %x {axes = array<i64: 1>} : (tensor<?x?xf32, #graph.dims<"batch", "seq">>) -> tensor<?xf32, #graph.dims<"batch">>
  return %y, %s : tensor<?x?xf32, #graph.dims<"batch", "seq">>, tensor<?xf32, #graph.dims<"batch">>
}

// -----

// Each row's product with itself.
// CHECK: 3x5x5xi64 {{\[\[\[}}0, 0, 0, 0, 0],
// CHECK-SAME: {{\[\[}}25, 0, 0, 0, 0], [0, 0, 0, 0, 0],
// CHECK-SAME: {{\[\[}}100, 110, 0, 0, 0], [110, 121, 0, 0, 0], [0, 0, 0, 0, 0],
func.func @main(%x: tensor<?x?x1xi64, #graph.dims<"batch", "seq", 1>> {graph.name = "x"})
    -> tensor<?x?x?xi64, #graph.dims<"batch", "seq", "seq">> {
  %t = graph.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<?x?x1xi64, #graph.dims<"batch", "seq", 1>>) -> tensor<?x1x?xi64, #graph.dims<"batch", 1, "seq">>
  %y = graph.matmul %x, %t : (tensor<?x?x1xi64, #graph.dims<"batch", "seq", 1>>, tensor<?x1x?xi64, #graph.dims<"batch", 1, "seq">>) -> tensor<?x?x?xi64, #graph.dims<"batch", "seq", "seq">>
  return %y : tensor<?x?x?xi64, #graph.dims<"batch", "seq", "seq">>
}
