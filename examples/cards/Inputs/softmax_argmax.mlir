// Shares of 2048 scaled logits and the first largest of them, for any number of rows.
!x = tensor<?x2048xf32, #graph.dims<"m", 2048>>
!r = tensor<?x1xf32, #graph.dims<"m", 1>>
!i = tensor<?x2048xi32, #graph.dims<"m", 2048>>
!b = tensor<?x2048xi1, #graph.dims<"m", 2048>>
func.func @main(%x: !x, %t: tensor<f32>) -> (!x, tensor<?xi32, #graph.dims<"m">>) {
  %none = graph.constant dense<2147483647> : tensor<i32>
  %g:2 = graph.group "first" {mechanism = "kernel.nest"} : !x, tensor<?xi32, #graph.dims<"m">> {
    %temperature = graph.broadcast %t : (tensor<f32>) -> !x
    %scaled = graph.div %x, %temperature : !x
    %top = graph.reduce_max %scaled {axes = array<i64: 1>, keep_dims = true} : (!x) -> !r
    %tops = graph.broadcast %top : (!r) -> !x
    %shifted = graph.sub %scaled, %tops : !x
    %power = graph.exp %shifted : !x
    %sum = graph.reduce_sum %power {axes = array<i64: 1>, keep_dims = true} : (!x) -> !r
    %sums = graph.broadcast %sum : (!r) -> !x
    %share = graph.div %power, %sums : !x
    %place = graph.iota {axis = 1 : i64} : () -> !i
    %nan = graph.is_nan %share : (!x) -> !b
    %best = graph.reduce_max %share {axes = array<i64: 1>, keep_dims = true} : (!x) -> !r
    %bests = graph.broadcast %best : (!r) -> !x
    %equal = graph.equal %share, %bests : (!x, !x) -> !b
    %found = graph.or %equal, %nan : !b
    %nones = graph.broadcast %none : (tensor<i32>) -> !i
    %candidate = graph.select %found, %place, %nones : (!b, !i, !i) -> !i
    %first = graph.reduce_min %candidate {axes = array<i64: 1>} : (!i) -> tensor<?xi32, #graph.dims<"m">>
    graph.yield %share, %first : !x, tensor<?xi32, #graph.dims<"m">>
  }
  return %g#0, %g#1 : !x, tensor<?xi32, #graph.dims<"m">>
}
