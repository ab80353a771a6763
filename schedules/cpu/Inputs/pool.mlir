// The largest of 2x2 pixels, of images of any size.
!x = tensor<?x?x?x17xf32, #graph.dims<"n", "h", "w", 17>>
!y = tensor<?x?x?x17xf32, #graph.dims<"n", "h floordiv 2", "w floordiv 2", 17>>
func.func @main(%x: !x) -> !y {
  %g = graph.group "pool" {mechanism = "window"} : !y {
    %p = graph.pool %x {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
      low = array<i64: 0, 0>, high = array<i64: 0, 0>, channels_last = true} : (!x) -> !y
    graph.yield %p : !y
  }
  return %g : !y
}
