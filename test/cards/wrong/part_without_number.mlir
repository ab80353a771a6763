// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A hole of a part of a vector takes the number of its elements after the indices.
// CHECK: {{.*}}/part_without_number.mlir:12:3: error: hole 'write_part' must have type (!program.ptr, i64, i64, i64, i64, vector<8xf32>) -> (), not (!program.ptr, i64, i64, i64, vector<8xf32>) -> ()
// CHECK: {{.*}}/part_without_number.mlir:13:3: error: 'kernel.product' has no hole 'fetch_b' holes: {{.*}}
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group : !transform.any_op
    transform.yield
  }
  func.func private @read_b_part(!program.ptr, i64, i64, i64, i64) -> vector<8xf32>
  func.func private @write_part(!program.ptr, i64, i64, i64, vector<8xf32>)
  func.func private @fetch_b(!program.ptr, i64, i64, i64)
  func.func @tasks(%g: !program.ptr) -> i64 {
    %one = arith.constant 1 : i64
    return %one : i64
  }
  func.func @kernel(%g: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr) {
    return
  }
}
