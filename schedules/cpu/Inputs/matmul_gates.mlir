// The cell of an LSTM without an output gate: c and tanh(c).
!x = tensor<?x24xf32, #graph.dims<"rows", 24>>
!s = tensor<?x60xf32, #graph.dims<"rows", 60>>
!c = tensor<?x20xf32, #graph.dims<"rows", 20>>
func.func @main(%x: !x, %b: tensor<24x60xf32> {heddle.constant}, %y: !s, %c: !c) -> (!c, !c) {
  %g:2 = graph.group "cell" {mechanism = "contraction"} : !c, !c {
    %p = graph.matmul %x, %b : (!x, tensor<24x60xf32>) -> !s
    %s = graph.add %p, %y : !s
    %i = graph.slice %s {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (!s) -> !c
    %f = graph.slice %s {starts = #graph.dims<0, 20>, steps = array<i64: 1, 1>} : (!s) -> !c
    %j = graph.slice %s {starts = #graph.dims<0, 40>, steps = array<i64: 1, 1>} : (!s) -> !c
    %in = graph.mul %i, %j : !c
    %kept = graph.mul %f, %c : !c
    %next = graph.add %in, %kept : !c
    %t = graph.tanh %next : !c
    graph.yield %t, %next : !c, !c
  }
  return %g#0, %g#1 : !c, !c
}
