// Results of a model whose factors are f16, on a device, are stored as such where products alone
// read them.
// RUN: heddle-opt %s --heddle-short-results=target=sm_80 | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: graph.group "a" {{.*}} : tensor<64x96xf16>
// CHECK: graph.group "b" {{.*}} : tensor<64x16xf32>
// CHECK: graph.matmul %{{.*}} : (tensor<64x96xf32>
func.func @main(%x: tensor<64x32xf32>) -> tensor<64x16xf32> {
  %first = graph.constant dense<1.0> : tensor<32x96xf32>
  %second = graph.constant dense<1.0> : tensor<96x16xf32>
  %a = graph.group "a" {device = 1 : i64, mechanism = "contraction"} : tensor<64x96xf32> {
    %0 = graph.matmul %x, %first {graph.factors = f16} : (tensor<64x32xf32>, tensor<32x96xf32>) -> tensor<64x96xf32>
    graph.yield %0 : tensor<64x96xf32>
  }
  %b = graph.group "b" {device = 1 : i64, mechanism = "contraction"} : tensor<64x16xf32> {
    %0 = graph.matmul %a, %second {graph.factors = f16} : (tensor<64x96xf32>, tensor<96x16xf32>) -> tensor<64x16xf32>
    graph.yield %0 : tensor<64x16xf32>
  }
  return %b : tensor<64x16xf32>
}
