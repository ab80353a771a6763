// A channels-last convolution of three filters of 5x5, of images of any size.
!x = tensor<?x?x?x11xf32, #graph.dims<"n", "h", "w", 11>>
!w = tensor<3x11x5x5xf32>
!y = tensor<?x?x?x3xf32, #graph.dims<"n", "h", "w", 3>>
func.func @main(%x: !x, %w: !w {heddle.constant}) -> !y {
  %g = graph.group "conv" {mechanism = "contraction"} : !y {
    %c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 2, 2>,
      high = array<i64: 2, 2>, channels_last = true} : (!x, !w) -> !y
    graph.yield %c : !y
  }
  return %g : !y
}
