// x * erf(x), half of a GELU.
!x = tensor<?x?xf32, #graph.dims<"rows", "columns">>
func.func @main(%x: !x) -> !x {
  %g = graph.group "gelu" {mechanism = "pointwise"} : !x {
    %e = graph.erf %x : !x
    %y = graph.mul %x, %e : !x
    graph.yield %y : !x
  }
  return %g : !x
}
