// RUN: heddle-opt %s --heddle-simplify-halves | FileCheck %s

module {
// Between the ops nothing is rounded; the result is.
// CHECK-LABEL: @chain
// CHECK-NEXT: %[[X:.*]] = graph.cast %arg0 : (tensor<?x8xf16, #graph.dims<"n", 8>>) -> tensor<?x8xf32
// CHECK-NEXT: %[[W:.*]] = graph.constant
// CHECK-NEXT: %[[WIDE:.*]] = graph.cast %[[W]]
// CHECK-NEXT: %[[P:.*]] = graph.matmul %[[X]], %[[WIDE]] {graph.factors = f16}
// CHECK: %[[E:.*]] = graph.exp %[[P]] : tensor<?x4xf32
// CHECK: %[[R:.*]] = graph.cast %[[E]] : (tensor<?x4xf32, #graph.dims<"n", 4>>) -> tensor<?x4xf16
// CHECK-NEXT: return %[[R]]
func.func @chain(%x: tensor<?x8xf16, #graph.dims<"n", 8>>) -> tensor<?x4xf16, #graph.dims<"n", 4>> {
  %w = graph.constant dense<0.5> : tensor<8x4xf16>
  %0 = graph.matmul %x, %w : (tensor<?x8xf16, #graph.dims<"n", 8>>, tensor<8x4xf16>) -> tensor<?x4xf16, #graph.dims<"n", 4>>
  %1 = graph.exp %0 : tensor<?x4xf16, #graph.dims<"n", 4>>
  return %1 : tensor<?x4xf16, #graph.dims<"n", 4>>
}

// A table stays narrow, what is read of it does not.
// CHECK-LABEL: @table
// CHECK: %[[ROWS:.*]] = graph.gather %{{.*}}, %arg0 {{.*}} -> tensor<3x4xf16>
// CHECK: %[[WIDE:.*]] = graph.cast %[[ROWS]] : (tensor<3x4xf16>) -> tensor<3x4xf32>
// CHECK: graph.exp %[[WIDE]]
func.func @table(%i: tensor<3xi64>) -> tensor<3x4xf16> {
  %w = graph.constant dense<0.5> : tensor<8x4xf16>
  %0 = graph.gather %w, %i {axis = 0 : i64} : (tensor<8x4xf16>, tensor<3xi64>) -> tensor<3x4xf16>
  %1 = graph.exp %0 : tensor<3x4xf16>
  return %1 : tensor<3x4xf16>
}

// What the model rounds is rounded; what it widens was never narrow.
// CHECK-LABEL: @casts
// CHECK-NEXT: %[[N:.*]] = graph.cast %arg0 : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: %[[W:.*]] = graph.cast %[[N]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = graph.sqrt %[[W]] : tensor<4xf32>
// CHECK: return %[[R]] : tensor<4xf32>
func.func @casts(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.cast %x : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = graph.sqrt %0 : tensor<4xbf16>
  %2 = graph.cast %1 : (tensor<4xbf16>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: @branches
// CHECK: graph.if
// CHECK: %[[A:.*]] = graph.add {{.*}} : tensor<4xf32>
// CHECK: %[[H:.*]] = graph.cast %[[A]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK: graph.yield %[[H]] : tensor<4xf16>
func.func @branches(%c: tensor<i1>, %x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = graph.if %c : (tensor<i1>) -> tensor<4xf16> {
    %1 = graph.add %x, %x : tensor<4xf16>
    graph.yield %1 : tensor<4xf16>
  } else {
    graph.yield %x : tensor<4xf16>
  }
  return %0 : tensor<4xf16>
}
}
