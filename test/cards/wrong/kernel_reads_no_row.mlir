// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A kernel of rows that reads none.
// CHECK: {{.*}}/kernel_reads_no_row.mlir:7:5: error: a kernel of rows reads its rows with read_0, but its source does not name it
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], nest = "m:p* { n:s(sum) n:p }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "rows" %group : !transform.any_op
    transform.yield
  }
  func.func @tasks(%g: !program.ptr) -> i64 {
    %one = arith.constant 1 : i64
    return %one : i64
  }
  func.func @kernel(%g: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr) {
    return
  }
}
