// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// What a hole of a nest takes follows from the example: read_1 takes the sum and what read_0 reads.
// CHECK: {{.*}}/nest_hole_of_another_type.mlir:11:3: error: hole 'write_0' must have type (!program.ptr, i64, i64, f32) -> f32, not (!program.ptr, i64, i64) -> ()
// CHECK: {{.*}}/nest_hole_of_another_type.mlir:12:3: error: 'kernel.nest' has no hole 'read_1'; did you mean 'read_0'? holes: extent_0, extent_1, read_0, write_0, store_0, load_0, knob_NAME, and read_ and write with _lanes or _part, fetch_ for read_
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", nest = "p* { s(sum) p }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "nest" %group : !transform.any_op
    transform.yield
  }
  func.func private @write_0(!program.ptr, i64, i64)
  func.func private @read_1(!program.ptr, i64, i64) -> f32
  func.func @tasks(%g: !program.ptr) -> i64 {
    %one = arith.constant 1 : i64
    return %one : i64
  }
  func.func @kernel(%g: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr) {
    return
  }
  func.func @example(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %sum = graph.reduce_sum %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %sums = graph.broadcast %sum : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %y = graph.div %x, %sums : tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }
}
