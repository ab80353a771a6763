// A sum and an input side by side.
!x = tensor<?x24xf32, #graph.dims<"rows", 24>>
!y = tensor<?x7xf32, #graph.dims<"rows", 7>>
!z = tensor<?x31xf32, #graph.dims<"rows", 31>>
func.func @main(%x: !x, %y: !y) -> !z {
  %s = graph.group "sum" {mechanism = "pointwise", schedule = {mechanism = "pointwise"}} : !x {
    %a = graph.add %x, %x : !x
    graph.yield %a : !x
  }
  %g = graph.group "joined" {mechanism = "pointwise"} : !z {
    %c = graph.concat %s, %y {axis = 1} : (!x, !y) -> !z
    graph.yield %c : !z
  }
  return %g : !z
}
