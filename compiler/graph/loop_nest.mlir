// The keys of ops and groups, as cards are found by them.
// RUN: heddle-opt %s --print-loop-nests | FileCheck %s
// RUN: heddle-opt %s --pass-pipeline='builtin.module(print-loop-nests{extents=true})' | FileCheck %s --check-prefix=SIZES

!x = tensor<?x64xf32, #graph.dims<"n", 64>>
func.func @main(%x: !x, %w: tensor<64x64xf32>, %b: tensor<64xf32>, %c: tensor<?x1xf32, #graph.dims<"n", 1>>) -> !x {
  // CHECK: graph.group: m:p { n:p(add,max) { k:s(dot) } }
  // SIZES: graph.group: m=n:p { n=64:p(add,max) { k=64:s(dot) } }
  %g = graph.group "linear" : !x {
    // CHECK: graph.matmul: m:p { n:p { k:s(dot) } }
    %m = graph.matmul %x, %w : (!x, tensor<64x64xf32>) -> !x
    // CHECK: graph.broadcast: m:p { n:p }
    %bb = graph.broadcast %b : (tensor<64xf32>) -> !x
    // CHECK: graph.add: m:p { n:p(add) }
    %a = graph.add %m, %bb : !x
    %r = graph.max %a, %x : !x
    graph.yield %r : !x
  }
  // Layer norm's first half: a row is reduced, then walked again.
  // CHECK: graph.group: m:p { n:s(sum) n:s(sub,mul,sum) }
  %h = graph.group "variance" : tensor<?x1xf32, #graph.dims<"n", 1>> {
    %s = graph.reduce_sum %x {axes = array<i64: 1>, keep_dims = true} : (!x) -> tensor<?x1xf32, #graph.dims<"n", 1>>
    %sb = graph.broadcast %s : (tensor<?x1xf32, #graph.dims<"n", 1>>) -> !x
    %d = graph.sub %x, %sb : !x
    %q = graph.mul %d, %d : !x
    %v = graph.reduce_sum %q {axes = array<i64: 1>, keep_dims = true} : (!x) -> tensor<?x1xf32, #graph.dims<"n", 1>>
    graph.yield %v : tensor<?x1xf32, #graph.dims<"n", 1>>
  }
  return %g : !x
}
