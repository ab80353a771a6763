// RUN: heddle-opt %s --heddle-simplify-channels-first | FileCheck %s

// Each reshape takes its size from the one before, by floats: one round of the rules settles one.
// CHECK-LABEL: @sizes_that_follow_from_settled_sizes
// CHECK-SAME: (%[[x:.*]]: tensor<12xf32>) -> tensor<12xf32>
// CHECK-NEXT: return %[[x]]
func.func @sizes_that_follow_from_settled_sizes(%x0: tensor<12xf32>)
    -> tensor<?xf32, #graph.dims<"$s.8">> {
  %n0 = graph.sizes {values = #graph.dims<12>} : () -> tensor<1xi64>
  %f0 = graph.cast %n0 : (tensor<1xi64>) -> tensor<1xf32>
  %c0 = graph.ceil %f0 : tensor<1xf32>
  %s0 = graph.cast %c0 : (tensor<1xf32>) -> tensor<1xi64>
  %x1 = graph.dynamic_reshape %x0, %s0
    : (tensor<12xf32>, tensor<1xi64>)
      -> tensor<?xf32, #graph.dims<"$s.0">>
  %n1 = graph.sizes {values = #graph.dims<"$s.0">} : () -> tensor<1xi64>
  %f1 = graph.cast %n1 : (tensor<1xi64>) -> tensor<1xf32>
  %c1 = graph.ceil %f1 : tensor<1xf32>
  %s1 = graph.cast %c1 : (tensor<1xf32>) -> tensor<1xi64>
  %x2 = graph.dynamic_reshape %x1, %s1
    : (tensor<?xf32, #graph.dims<"$s.0">>, tensor<1xi64>)
      -> tensor<?xf32, #graph.dims<"$s.1">>
  %n2 = graph.sizes {values = #graph.dims<"$s.1">} : () -> tensor<1xi64>
  %f2 = graph.cast %n2 : (tensor<1xi64>) -> tensor<1xf32>
  %c2 = graph.ceil %f2 : tensor<1xf32>
  %s2 = graph.cast %c2 : (tensor<1xf32>) -> tensor<1xi64>
  %x3 = graph.dynamic_reshape %x2, %s2
    : (tensor<?xf32, #graph.dims<"$s.1">>, tensor<1xi64>)
      -> tensor<?xf32, #graph.dims<"$s.2">>
  %n3 = graph.sizes {values = #graph.dims<"$s.2">} : () -> tensor<1xi64>
  %f3 = graph.cast %n3 : (tensor<1xi64>) -> tensor<1xf32>
  %c3 = graph.ceil %f3 : tensor<1xf32>
  %s3 = graph.cast %c3 : (tensor<1xf32>) -> tensor<1xi64>
  %x4 = graph.dynamic_reshape %x3, %s3
    : (tensor<?xf32, #graph.dims<"$s.2">>, tensor<1xi64>)
      -> tensor<?xf32, #graph.dims<"$s.3">>
  %n4 = graph.sizes {values = #graph.dims<"$s.3">} : () -> tensor<1xi64>
  %f4 = graph.cast %n4 : (tensor<1xi64>) -> tensor<1xf32>
  %c4 = graph.ceil %f4 : tensor<1xf32>
  %s4 = graph.cast %c4 : (tensor<1xf32>) -> tensor<1xi64>
  %x5 = graph.dynamic_reshape %x4, %s4
    : (tensor<?xf32, #graph.dims<"$s.3">>, tensor<1xi64>)
      -> tensor<?xf32, #graph.dims<"$s.4">>
  %n5 = graph.sizes {values = #graph.dims<"$s.4">} : () -> tensor<1xi64>
  %f5 = graph.cast %n5 : (tensor<1xi64>) -> tensor<1xf32>
  %c5 = graph.ceil %f5 : tensor<1xf32>
  %s5 = graph.cast %c5 : (tensor<1xf32>) -> tensor<1xi64>
  %x6 = graph.dynamic_reshape %x5, %s5
    : (tensor<?xf32, #graph.dims<"$s.4">>, tensor<1xi64>)
      -> tensor<?xf32, #graph.dims<"$s.5">>
  %n6 = graph.sizes {values = #graph.dims<"$s.5">} : () -> tensor<1xi64>
  %f6 = graph.cast %n6 : (tensor<1xi64>) -> tensor<1xf32>
  %c6 = graph.ceil %f6 : tensor<1xf32>
  %s6 = graph.cast %c6 : (tensor<1xf32>) -> tensor<1xi64>
  %x7 = graph.dynamic_reshape %x6, %s6
    : (tensor<?xf32, #graph.dims<"$s.5">>, tensor<1xi64>)
      -> tensor<?xf32, #graph.dims<"$s.6">>
  %n7 = graph.sizes {values = #graph.dims<"$s.6">} : () -> tensor<1xi64>
  %f7 = graph.cast %n7 : (tensor<1xi64>) -> tensor<1xf32>
  %c7 = graph.ceil %f7 : tensor<1xf32>
  %s7 = graph.cast %c7 : (tensor<1xf32>) -> tensor<1xi64>
  %x8 = graph.dynamic_reshape %x7, %s7
    : (tensor<?xf32, #graph.dims<"$s.6">>, tensor<1xi64>)
      -> tensor<?xf32, #graph.dims<"$s.7">>
  %n8 = graph.sizes {values = #graph.dims<"$s.7">} : () -> tensor<1xi64>
  %f8 = graph.cast %n8 : (tensor<1xi64>) -> tensor<1xf32>
  %c8 = graph.ceil %f8 : tensor<1xf32>
  %s8 = graph.cast %c8 : (tensor<1xf32>) -> tensor<1xi64>
  %x9 = graph.dynamic_reshape %x8, %s8
    : (tensor<?xf32, #graph.dims<"$s.7">>, tensor<1xi64>)
      -> tensor<?xf32, #graph.dims<"$s.8">>
  return %x9 : tensor<?xf32, #graph.dims<"$s.8">>
}
