// RUN: not heddle cards check %s 2>&1 | FileCheck %s --match-full-lines --implicit-check-not='error:'
// A source that is not there.
// CHECK: {{.*}}/kernel_without_source.mlir:7:5: error: cannot read the kernel's source '{{.*}}/Inputs/nothing.c': No such file or directory
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group from "Inputs/nothing.c" : !transform.any_op
    transform.yield
  }
}
