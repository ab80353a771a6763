// A channels-last convolution, 3x3, of images of any size.
!x = tensor<?x?x?x16xf32, #graph.dims<"n", "h", "w", 16>>
!w = tensor<32x16x3x3xf32>
!y = tensor<?x?x?x32xf32, #graph.dims<"n", "h", "w", 32>>
func.func @main(%x: !x, %w: !w {heddle.constant}) -> !y {
  %g = graph.group "conv" {mechanism = "contraction"} : !y {
    %c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>,
      high = array<i64: 1, 1>, channels_last = true} : (!x, !w) -> !y
    graph.yield %c : !y
  }
  return %g : !y
}
