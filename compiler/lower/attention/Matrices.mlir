// Matrices: scores and values of an attention of bf16 in registers that hold matrices, if the machine
// has some and the tile is theirs.
// RUN: heddle-opt %s --heddle-lower=target=x86-64-amx --canonicalize --cse | FileCheck %s
// RUN: heddle-opt %s --heddle-lower=target=x86-64-bf16 --canonicalize --cse | FileCheck %s --check-prefix=DOTS

// Keys 64 of 16 numbers, which fill half of a step: two panels of 32. Their sums go through the
// softmax row by row; values are 16 columns, over as many steps as there are keys.
// CHECK-LABEL: func.func private @kernel
// CHECK: scf.for
// CHECK: program.multiply_matrices bf16_bf16 {{.*}} steps %c1{{.*}} rows 32 columns 32
// CHECK: scf.for
// CHECK: arith.cmpf ogt
// CHECK: vector.reduction <maxnumf>
// CHECK: arith.truncf {{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK: program.multiply_matrices bf16_bf16 {{.*}} steps %c2{{.*}} rows 32 columns 16
// CHECK: scf.for
// CHECK: arith.mulf
// CHECK-NOT: program.dot
// CHECK: @heddle_program_run
// DOTS-NOT: program.multiply_matrices
// DOTS: program.dot
!q = tensor<2x4x64x16xf32>
!k = tensor<2x4x16x64xf32>
!s = tensor<2x4x64x64xf32>
!r = tensor<2x4x64x1xf32>
func.func @main(%q: !q, %k: !k, %v: !q) -> !q {
  %g = graph.group "attention" {mechanism = "attention", precision = "bf16", schedule = {m = 32, mechanism = "attention", n = 32}} : !q {
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
