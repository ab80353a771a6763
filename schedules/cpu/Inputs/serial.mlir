// Updates of single elements, which may meet.
!x = tensor<?x?xf32, #graph.dims<"rows", "columns">>
!i = tensor<?x3xi64, #graph.dims<"rows", 3>>
!u = tensor<?x3xf32, #graph.dims<"rows", 3>>
func.func @main(%x: !x, %i: !i, %u: !u) -> !x {
  %g = graph.group "scatter" {mechanism = "serial"} : !x {
    %y = graph.scatter_elements %x, %i, %u {axis = 1} : (!x, !i, !u) -> !x
    graph.yield %y : !x
  }
  return %g : !x
}
