// RUN: heddle-opt %S/Inputs/softmax_argmax.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// softmax_argmax: a softmax of scaled logits and the index of its largest share, two results.
//
// Matches   rows with their largest element, the sum of powers, a result of their shape, its largest
//           element and the first index that has it, as simplify writes ArgMax; 2048 columns or more.
// Produces  softmax_argmax.c: three passes over a row in vectors while it is in the cache, and one
//           that looks for the index. A task has `rows` rows.
// Needs     clang on the machine that compiles the model.
// Why       the shares are not read from memory again (bench/notes/2026-11-23-cards-of-any-nest.md).
!x = tensor<?x2048xf32, #graph.dims<"m", 2048>>
!r = tensor<?x1xf32, #graph.dims<"m", 1>>
!i = tensor<?x2048xi32, #graph.dims<"m", 2048>>
!b = tensor<?x2048xi1, #graph.dims<"m", 2048>>
module attributes {transform.with_named_sequence, heddle.card = {target = "cpu", priority = 20 : i64,
    min = {n = 2048}, nest = ["p* { n:s(max) n:s(sum) } p* { n:s(max) n:s(min) }",
                             "p* { n:s(max) n:s(sum) n:s(max) n:s(min) }"]}} {
  // CHECK: card = "softmax_argmax"
  // CHECK-SAME: mechanism = "kernel.nest", rows = 1 : i64
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %rows: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 8, 16], heddle.default = 1 : i64}) {
    transform.heddle.kernel "nest" %group from "softmax_argmax.c" rows %rows : !transform.any_op
    transform.yield
  }
  func.func @example(%x: !x, %t: tensor<f32>) -> (!x, tensor<?xi32, #graph.dims<"m">>) {
    %none = graph.constant dense<2147483647> : tensor<i32>
    %temperature = graph.broadcast %t : (tensor<f32>) -> !x
    %scaled = graph.div %x, %temperature : !x
    %top = graph.reduce_max %scaled {axes = array<i64: 1>, keep_dims = true} : (!x) -> !r
    %tops = graph.broadcast %top : (!r) -> !x
    %shifted = graph.sub %scaled, %tops : !x
    %power = graph.exp %shifted : !x
    %sum = graph.reduce_sum %power {axes = array<i64: 1>, keep_dims = true} : (!x) -> !r
    %sums = graph.broadcast %sum : (!r) -> !x
    %share = graph.div %power, %sums : !x
    %place = graph.iota {axis = 1 : i64} : () -> !i
    %nan = graph.is_nan %share : (!x) -> !b
    %best = graph.reduce_max %share {axes = array<i64: 1>, keep_dims = true} : (!x) -> !r
    %bests = graph.broadcast %best : (!r) -> !x
    %equal = graph.equal %share, %bests : (!x, !x) -> !b
    %found = graph.or %equal, %nan : !b
    %nones = graph.broadcast %none : (tensor<i32>) -> !i
    %candidate = graph.select %found, %place, %nones : (!b, !i, !i) -> !i
    %first = graph.reduce_min %candidate {axes = array<i64: 1>} : (!i) -> tensor<?xi32, #graph.dims<"m">>
    return %share, %first : !x, tensor<?xi32, #graph.dims<"m">>
  }
}
