// The gradient of 19 filters of 3x3 and 11 channels, from images of any number and size.
!x = tensor<?x?x?x11xf32, #graph.dims<"n", "h", "w", 11>>
!y = tensor<?x?x?x19xf32, #graph.dims<"n", "h", "w", 19>>
!w = tensor<19x11x3x3xf32>
func.func @main(%x: !x, %dy: !y) -> !w {
  %g = graph.group "filters" {mechanism = "pointwise"} : !w {
    %c = graph.conv_filter_gradient %x, %dy {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 1, 1>, high = array<i64: 1, 1>, channels_last = true} : (!x, !y) -> !w
    graph.yield %c : !w
  }
  return %g : !w
}
