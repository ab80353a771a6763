// RUN: not heddle cards check %s 2>&1 | FileCheck %s
// A kernel that leaves out rows beyond a multiple of 8. Its example has 16 rows, so others are tried.
// CHECK: {{.*}}/kernel_without_tail.mlir: WRONG: result 0:
// CHECK-NEXT: group{{.*}}example of any size
// CHECK-NEXT: sizes{{.*}}size_16
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group from "Inputs/without_tail.c" : !transform.any_op
    transform.yield
  }
  func.func @example(%x: tensor<16x8xf32>, %w: tensor<8x4xf32> {heddle.constant}) -> tensor<16x4xf32> {
    %y = graph.matmul %x, %w : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
    return %y : tensor<16x4xf32>
  }
}
