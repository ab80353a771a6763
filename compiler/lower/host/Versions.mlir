// Versions of a group: a run compares sizes and launches the phases of one of them.
// RUN: heddle-opt %s --heddle-lower --canonicalize --cse | FileCheck %s

!x = tensor<?x33xf32, #graph.dims<"n", 33>>
!y = tensor<?x48xf32, #graph.dims<"n", 48>>
// The first and the last version are one function.
// CHECK-COUNT-2: func.func private @kernel
// CHECK-NOT: func.func private @kernel
// CHECK-LABEL: func.func @heddle_program_run
// CHECK: %[[IS_MORE:.*]] = arith.cmpi slt, %{{.*}}, %c33_i64
// CHECK: %[[SECOND:.*]] = arith.select %[[IS_MORE]], %c1_i64, %c2_i64
// CHECK: %[[IS_FEW:.*]] = arith.cmpi slt, %{{.*}}, %c5_i64
// CHECK: %[[CHOSEN:.*]] = arith.select %[[IS_FEW]], %c0_i64, %[[SECOND]]
// CHECK: arith.cmpi eq, %[[CHOSEN]], %c0_i64
// CHECK: scf.if
// CHECK: call @[[FIRST:start_kernel_[0-9a-f]*]]
// CHECK: arith.cmpi eq, %[[CHOSEN]], %c1_i64
// CHECK: arith.cmpi eq, %[[CHOSEN]], %c2_i64
// CHECK: call @[[FIRST]]
func.func @main(%x: !x) -> !y {
  %w = graph.constant dense<1.0> : tensor<33x48xf32>
  %a = graph.group "product" {mechanism = "contraction", card = "matmul", card_hash = "0",
      schedule = {mechanism = "contraction", m = 8 : i64, n = 16 : i64, versions = [
        {mechanism = "contraction", m = 8 : i64, n = 16 : i64, when = {n = 4 : i64}},
        {mechanism = "contraction", m = 2 : i64, n = 16 : i64, when = {"2*n" = 32 : i64}}]}} : !y {
    %p = graph.matmul %x, %w : (!x, tensor<33x48xf32>) -> !y
    graph.yield %p : !y
  }
  return %a : !y
}
