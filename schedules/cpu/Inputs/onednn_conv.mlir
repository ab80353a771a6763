// Channels-last convolutions of images of any size: strides, groups and dilations, one channel a
// group, one dimension of space.
!x = tensor<?x?x?x16xf32, #graph.dims<"n", "h", "w", 16>>
!y = tensor<?x?x?x32xf32, #graph.dims<"n", "h", "w", 32>>
!z = tensor<?x?x?x16xf32, #graph.dims<"n", "(h + 1) floordiv 2", "(w + 1) floordiv 2", 16>>
!d = tensor<?x?x?x16xf32, #graph.dims<"n", "h", "w", 16>>
!l = tensor<?x?x12xf32, #graph.dims<"n", "h", 12>>
!m = tensor<?x?x20xf32, #graph.dims<"n", "h", 20>>
func.func @main(%x: !x, %w: tensor<32x16x3x3xf32> {heddle.constant}, %bias: tensor<32xf32>,
    %residual: !y, %v: tensor<16x4x3x3xf32> {heddle.constant},
    %u: tensor<16x1x3x3xf32> {heddle.constant}, %l: !l,
    %t: tensor<20x12x3xf32> {heddle.constant}) -> (!y, !z, !d, !m) {
  %g = graph.group "conv" {mechanism = "contraction"} : !y {
    %zero = graph.constant dense<0.0> : tensor<f32>
    %c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>,
      high = array<i64: 1, 1>, channels_last = true} : (!x, tensor<32x16x3x3xf32>) -> !y
    %e = graph.broadcast %bias : (tensor<32xf32>) -> !y
    %s = graph.add %c, %e : !y
    %p = graph.add %s, %residual : !y
    %f = graph.broadcast %zero : (tensor<f32>) -> !y
    %r = graph.max %p, %f : !y
    graph.yield %r : !y
  }
  %h = graph.group "groups" {mechanism = "contraction"} : !z {
    %c = graph.conv %x, %v {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>,
      high = array<i64: 1, 1>, groups = 4 : i64, channels_last = true} : (!x, tensor<16x4x3x3xf32>) -> !z
    graph.yield %c : !z
  }
  %i = graph.group "depthwise" {mechanism = "window"} : !d {
    %c = graph.conv %x, %u {strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>, low = array<i64: 2, 2>,
      high = array<i64: 2, 2>, groups = 16 : i64, channels_last = true} : (!x, tensor<16x1x3x3xf32>) -> !d
    graph.yield %c : !d
  }
  %j = graph.group "line" {mechanism = "contraction"} : !m {
    %c = graph.conv %l, %t {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 2>,
      high = array<i64: 0>, channels_last = true} : (!l, tensor<20x12x3xf32>) -> !m
    graph.yield %c : !m
  }
  return %g, %h, %i, %j : !y, !z, !d, !m
}
