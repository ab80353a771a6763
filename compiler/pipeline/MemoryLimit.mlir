// What a run may take: inputs and output are 16 KiB, and 16 KiB lie between the kernels unless `a` is
// computed again for `e`. The refusal names the least that was found, which will do.
// RUN: heddle-opt %s --heddle-plan="memory=32768" | FileCheck %s --check-prefix=ENOUGH
// RUN: heddle-opt %s --heddle-plan="memory=32767" | FileCheck %s
// RUN: heddle-opt %s --heddle-plan="memory=28672" | FileCheck %s
// RUN: not heddle-opt %s --heddle-plan="memory=28671" 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: not heddle-opt %s --heddle-plan="memory=16384" 2>&1 | FileCheck %s --check-prefix=INPUTS

// ENOUGH-LABEL: @main
// ENOUGH-NOT: ~1
// CHECK-LABEL: @main
// CHECK: %[[C:.*]] = graph.group "c"
// CHECK: %[[AGAIN:.*]] = graph.group "a~1" {card = "matmul", {{.*}} schedule = {m =
// CHECK-NEXT: graph.matmul %arg0, %arg1
// CHECK: graph.group "e"
// CHECK-NEXT: %[[D:.*]] = graph.matmul %[[C]], %arg2
// CHECK-NEXT: graph.add %[[D]], %[[AGAIN]]
// LEAST: error: @main: error: a run may take 28.0 KiB, but the least that was found is 28.0 KiB (28672 bytes): inputs 12.0 KiB, outputs 4.0 KiB, weights 0.0 KiB, between kernels 12.0 KiB with results computed again; allow more, or make the batch smaller
// INPUTS: error: @main: error: a run may take 16.0 KiB, but the least that was found is 28.0 KiB (28672 bytes): {{.*}}; all but the last are there in any case: allow more, or make the batch smaller
func.func @main(%x: tensor<32x32xf32>, %v: tensor<32x32xf32>, %w: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %a = graph.matmul %x, %v : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("a")
  %b = graph.matmul %a, %w : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("b")
  %c = graph.matmul %b, %w : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("c")
  %d = graph.matmul %c, %w : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("d")
  %e = graph.add %d, %a : tensor<32x32xf32> loc("e")
  return %e : tensor<32x32xf32>
}
