// One 3x3 filter a channel.
!x = tensor<1x8x8x16xf32>
!w = tensor<16x1x3x3xf32>
func.func @main(%x: !x, %w: !w) -> !x {
  %g = graph.group "depthwise" {kind = "window"} : !x {
    %c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>,
      high = array<i64: 1, 1>, groups = 16, channels_last = true} : (!x, !w) -> !x
    graph.yield %c : !x
  }
  return %g : !x
}
