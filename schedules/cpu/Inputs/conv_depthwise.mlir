// One 3x3 filter a channel, of images of any size.
!x = tensor<?x?x?x17xf32, #graph.dims<"n", "h", "w", 17>>
!w = tensor<17x1x3x3xf32>
func.func @main(%x: !x, %w: !w {heddle.constant}) -> !x {
  %g = graph.group "depthwise" {mechanism = "window"} : !x {
    %c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>,
      high = array<i64: 1, 1>, groups = 17, channels_last = true} : (!x, !w) -> !x
    graph.yield %c : !x
  }
  return %g : !x
}
