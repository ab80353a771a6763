// Elements that are no numbers: printed and read again; folded and interpreted as their codes.
// RUN: heddle-opt %s | heddle-opt | FileCheck %s
// RUN: heddle-opt %s --heddle-simplify-fold | FileCheck %s --check-prefix=FOLD
// RUN: heddle-opt %s --heddle-interpret | FileCheck %s --check-prefix=VALUE

module attributes {graph.strings = ["", "b", "a"]} {
// CHECK-LABEL: func.func @main
func.func @main() -> (tensor<2x!graph.string>, tensor<2x!graph.scale8>, tensor<2x2xui4>, tensor<2xi1>, tensor<2x1x!graph.string>) {
  // CHECK-NEXT: graph.constant #graph.bits<dense<[2, 1, 0]> : tensor<3xi64>> : tensor<3x!graph.string>
  %texts = graph.constant #graph.bits<dense<[2, 1, 0]> : tensor<3xi64>> : tensor<3x!graph.string>
  // CHECK-NEXT: graph.constant #graph.bits<dense_resource<scales> : tensor<3xui8>> : tensor<3x!graph.scale8>
  %scales = graph.constant #graph.bits<dense_resource<scales> : tensor<3xui8>> : tensor<3x!graph.scale8>
  // CHECK-NEXT: graph.constant #graph.bits<dense<{{\[\[}}1, 15], [8, 7]]> : tensor<2x2xui4>> : tensor<2x2x!graph.float4>
  %codes = graph.constant #graph.bits<dense<[[1, 15], [8, 7]]> : tensor<2x2xui4>> : tensor<2x2x!graph.float4>
  // CHECK-NEXT: graph.constant #graph.bits<dense<1> : tensor<2xi64>> : tensor<2x!graph.string>
  %b = graph.constant #graph.bits<dense<1> : tensor<2xi64>> : tensor<2x!graph.string>
  %places = graph.constant dense<[1, 2]> : tensor<2xi64>
  // FOLD-DAG: %[[TEXTS:.*]] = graph.constant #graph.bits<dense<[1, 0]> : tensor<2xi64>> : tensor<2x!graph.string>
  // VALUE: !graph.string [1, 0]
  %some = graph.gather %texts, %places {axis = 0} : (tensor<3x!graph.string>, tensor<2xi64>) -> tensor<2x!graph.string>
  // FOLD-DAG: %[[SCALES:.*]] = graph.constant #graph.bits<dense<[255, 0]> : tensor<2xui8>> : tensor<2x!graph.scale8>
  // VALUE-NEXT: !graph.scale8 [255, 0]
  %factors = graph.gather %scales, %places {axis = 0} : (tensor<3x!graph.scale8>, tensor<2xi64>) -> tensor<2x!graph.scale8>
  // FOLD-DAG: %[[CODES:.*]] = graph.constant dense<{{\[\[}}1, 8], [15, 7]]> : tensor<2x2xui4>
  // VALUE-NEXT: ui4 {{\[\[}}1, 8], [15, 7]]
  %moved = graph.transpose %codes {permutation = array<i64: 1, 0>} : (tensor<2x2x!graph.float4>) -> tensor<2x2x!graph.float4>
  %bits = graph.bitcast %moved : (tensor<2x2x!graph.float4>) -> tensor<2x2xui4>
  // FOLD-DAG: %[[SAME:.*]] = graph.constant dense<[true, false]> : tensor<2xi1>
  // VALUE-NEXT: i1 [1, 0]
  %same = graph.equal %some, %b : (tensor<2x!graph.string>, tensor<2x!graph.string>) -> tensor<2xi1>
  // FOLD-DAG: %[[COLUMN:.*]] = graph.constant #graph.bits<dense<1> : tensor<2x1xi64>> : tensor<2x1x!graph.string>
  // VALUE-NEXT: !graph.string {{\[\[}}1], [1]]
  %column = graph.reshape %b : (tensor<2x!graph.string>) -> tensor<2x1x!graph.string>
  // FOLD: return %[[TEXTS]], %[[SCALES]], %[[CODES]], %[[SAME]], %[[COLUMN]]
  return %some, %factors, %bits, %same, %column
      : tensor<2x!graph.string>, tensor<2x!graph.scale8>, tensor<2x2xui4>, tensor<2xi1>, tensor<2x1x!graph.string>
}
}
{-#
  dialect_resources: {
    builtin: {
      scales: "0x0100000001FF00"
    }
  }
#-}
