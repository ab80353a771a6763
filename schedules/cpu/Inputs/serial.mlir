// The two largest of each row.
!x = tensor<?x?xf32, #graph.dims<"rows", "columns">>
!v = tensor<?x2xf32, #graph.dims<"rows", 2>>
!i = tensor<?x2xi64, #graph.dims<"rows", 2>>
func.func @main(%x: !x) -> (!v, !i) {
  %g:2 = graph.group "topk" {kind = "serial"} : !v, !i {
    %t:2 = graph.topk %x {axis = 1} : (!x) -> (!v, !i)
    graph.yield %t#0, %t#1 : !v, !i
  }
  return %g#0, %g#1 : !v, !i
}
