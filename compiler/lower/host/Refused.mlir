// Groups that cannot be lowered are refused with the reason.
// RUN: heddle-opt %s --split-input-file --verify-diagnostics --heddle-lower

// expected-error @+1 {{group 'g': its device is 7, but the last one of the target is 0}}
module {
  func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %g = graph.group "g" {device = 7, mechanism = "pointwise"} : tensor<4x8xf32> {
      %e = graph.exp %x : tensor<4x8xf32>
      graph.yield %e : tensor<4x8xf32>
    }
    return %g : tensor<4x8xf32>
  }
}

// -----

// The mechanism does not serve filters without elements.
// expected-error @+1 {{group 'filters' cannot be lowered: the sizes of the filters of}}
module {
  func.func @main(%x: tensor<2x16x16x0xf32>, %dy: tensor<2x16x16x16xf32>) -> tensor<16x0x3x3xf32> {
    %g = graph.group "filters" {mechanism = "pointwise", schedule = {mechanism = "filter_gradient", m = 2, n = 16}} : tensor<16x0x3x3xf32> {
      %c = graph.conv_filter_gradient %x, %dy {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        low = array<i64: 1, 1>, high = array<i64: 1, 1>, channels_last = true}
        : (tensor<2x16x16x0xf32>, tensor<2x16x16x16xf32>) -> tensor<16x0x3x3xf32>
      graph.yield %c : tensor<16x0x3x3xf32>
    }
    return %g : tensor<16x0x3x3xf32>
  }
}
