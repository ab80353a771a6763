// RUN: heddle-opt %S/Inputs/norm_gate.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// norm_gate: RMSNorm, the two products of a gated unit and silu(a) * b in one kernel.
//
// Matches   a sum over a row, two products of what follows from it, and a result of their shape.
// Produces  norm_gate.c: at most `rows` rows are normalised at a time, then both sums of m rows by a
//           vector of columns stay in registers. A task has one vector of columns.
// Needs     clang on the machine that compiles the model. Scratch for the rows of a task.
// Why       neither norm nor products reach memory (bench/notes/2026-11-23-cards-of-any-nest.md).
!x = tensor<?x96xf32, #graph.dims<"m", 96>>
!r = tensor<?x1xf32, #graph.dims<"m", 1>>
!y = tensor<?x80xf32, #graph.dims<"m", 80>>
module attributes {transform.with_named_sequence, heddle.card = {target = "cpu", priority = 20 : i64,
    nest = "p* { s(sum) p { s(dot) } p { s(dot) } }"}} {
  // CHECK: card = "norm_gate"
  // CHECK-SAME: m = 8 : i64, mechanism = "kernel.nest"
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 6, 8, 12], heddle.default = 8 : i64},
      %rows: !transform.param<i64> {transform.readonly,
        heddle.knob = [16, 32, 64, 128], heddle.default = 128 : i64}) {
    transform.heddle.kernel "nest" %group from "norm_gate.c" m %m rows %rows : !transform.any_op
    transform.yield
  }
  func.func @example(%x: !x, %scale: tensor<96xf32>, %a: tensor<96x80xf32> {heddle.constant},
      %b: tensor<96x80xf32> {heddle.constant}) -> !y {
    %length = graph.constant dense<96.0> : tensor<f32>
    %epsilon = graph.constant dense<1.0e-6> : tensor<f32>
    %square = graph.mul %x, %x : !x
    %sum = graph.reduce_sum %square {axes = array<i64: 1>, keep_dims = true} : (!x) -> !r
    %lengths = graph.broadcast %length : (tensor<f32>) -> !r
    %mean = graph.div %sum, %lengths : !r
    %epsilons = graph.broadcast %epsilon : (tensor<f32>) -> !r
    %shifted = graph.add %mean, %epsilons : !r
    %root = graph.sqrt %shifted : !r
    %roots = graph.broadcast %root : (!r) -> !x
    %unit = graph.div %x, %roots : !x
    %scales = graph.broadcast %scale : (tensor<96xf32>) -> !x
    %norm = graph.mul %unit, %scales : !x
    %gate = graph.matmul %norm, %a : (!x, tensor<96x80xf32>) -> !y
    %up = graph.matmul %norm, %b : (!x, tensor<96x80xf32>) -> !y
    %half = graph.sigmoid %gate : !y
    %silu = graph.mul %gate, %half : !y
    %y = graph.mul %silu, %up : !y
    return %y : !y
  }
}
