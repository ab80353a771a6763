// Attention: the scores of a strip of queries stay in the scratch of a task, from the product that makes
// them, over their softmax, to the product that takes them.
// RUN: heddle-opt %s --split-input-file --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: %{{.*}}:12 = scf.for
// CHECK-COUNT-12: math.fma {{.*}} : vector<8xf32>
// CHECK-NEXT: scf.yield
// The product's epilogue takes the largest scores of each row along.
// CHECK: arith.cmpf ogt
// CHECK: vector.reduction <maxnumf>
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>)
// CHECK: arith.addf {{.*}} : vector<8xf32>
// CHECK: %[[SUMS:.*]]:12 = scf.for
// CHECK-COUNT-12: math.fma {{.*}} : vector<8xf32>
// CHECK-NEXT: scf.yield
// CHECK-LABEL: @heddle_program_run
!q = tensor<2x4x64x16xf32>
!k = tensor<2x4x16x64xf32>
!s = tensor<2x4x64x64xf32>
!r = tensor<2x4x64x1xf32>
func.func @main(%q: !q, %k: !k, %v: !q) -> !q {
  %g = graph.group "attention" {mechanism = "attention"} : !q {
    %l = graph.matmul %q, %k : (!q, !k) -> !s
    %x = graph.reduce_max %l {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
    %xb = graph.broadcast %x : (!r) -> !s
    %m = graph.sub %l, %xb : !s
    %e = graph.exp %m : !s
    %t = graph.reduce_sum %e {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
    %tb = graph.broadcast %t : (!r) -> !s
    %p = graph.div %e, %tb : !s
    %o = graph.matmul %p, %v : (!s, !q) -> !q
    graph.yield %o : !q
  }
  return %g : !q
}
