// A stored matrix whose codes are a resource is printed, and read again.
// RUN: heddle-opt %s | heddle-opt | FileCheck %s

// CHECK: graph.constant #graph.stored<codes = dense_resource<codes> : tensor<2x2xi8>> : tensor<2x2xf32>
func.func @main(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = graph.constant #graph.stored<codes = dense_resource<codes> : tensor<2x2xi8>> : tensor<2x2xf32>
  %y = graph.matmul %x, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
// CHECK: codes: "0x0100000001020304"
{-#
  dialect_resources: {
    builtin: {
      codes: "0x0100000001020304"
    }
  }
#-}
