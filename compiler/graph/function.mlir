// What the function of a model is held to: each label of Function.h, and what binds sizes.
// RUN: heddle-opt %s --heddle-verify --split-input-file --verify-diagnostics

!n = tensor<?xf32, #graph.dims<"n">>
!k = tensor<?xf32, #graph.dims<"$k.0">>

// By an argument, by an op before, by an argument of a region, and sums over rows.
func.func @main(%x: !n, %k: tensor<1xi64>, %c: tensor<i1>, %t: tensor<i64>) {
  %twice = graph.concat %x, %x {axis = 0} : (!n, !n) -> tensor<?xf32, #graph.dims<"2*n">>
  graph.bind_sizes %k {symbols = #graph.dims<"$k.0">, message = "%lld"} : tensor<1xi64>
  %zero = graph.constant dense<0.0> : tensor<1xf32>
  %z = graph.broadcast %zero : (tensor<1xf32>) -> !k
  %l = graph.loop %t, %c, %z : (tensor<i64>, tensor<i1>, !k) -> tensor<?xf32, #graph.dims<"$l.1">> {
  ^bb0(%i: tensor<i64>, %b: tensor<i1>, %s: tensor<?xf32, #graph.dims<"$s.2">>):
    %e = graph.exp %s : tensor<?xf32, #graph.dims<"$s.2">>
    graph.yield %b, %e : tensor<i1>, tensor<?xf32, #graph.dims<"$s.2">>
  }
  return
}

// -----

func.func @main(%lengths: tensor<?xi64, #graph.dims<"batch">>, %x: tensor<?x?xf32, #graph.dims<"batch", "seq">>) {
  %r = graph.row_lengths %lengths {of = "batch", size = "seq"} : (tensor<?xi64, #graph.dims<"batch">>) -> tensor<?xi64, #graph.dims<"batch">>
  %s = graph.sizes {values = #graph.dims<"total(seq(batch))">} : () -> tensor<1xi64>
  return
}

// -----

func.func @main() {
  // expected-error @+1 {{SY1: no argument of the function and no op before this one binds the size 'n', which #graph.dims<"2*n"> names; give an argument this size, or bind it with graph.bind_sizes before}}
  %s = graph.sizes {values = #graph.dims<"2*n">} : () -> tensor<1xi64>
  return
}

// -----

func.func @main(%x: tensor<1xf32>) {
  // expected-error @+1 {{SY1: no argument of the function and no op before this one binds the size 'm'}}
  %y = graph.broadcast %x : (tensor<1xf32>) -> tensor<?xf32, #graph.dims<"m">>
  return
}

// -----

func.func @main(%x: tensor<1xf32>, %k: tensor<1xi64>) {
  // expected-error @+1 {{SY1: no argument of the function and no op before this one binds the size '$k.0'}}
  %y = graph.broadcast %x : (tensor<1xf32>) -> tensor<?xf32, #graph.dims<"$k.0">>
  graph.bind_sizes %k {symbols = #graph.dims<"$k.0">, message = "%lld"} : tensor<1xi64>
  return
}

// -----

// What a branch binds is not known after it.
func.func @main(%x: tensor<1xf32>, %k: tensor<1xi64>, %c: tensor<i1>) {
  graph.if %c : (tensor<i1>) -> () {
    graph.bind_sizes %k {symbols = #graph.dims<"$k.0">, message = "%lld"} : tensor<1xi64>
    graph.yield
  } else {
    graph.yield
  }
  // expected-error @+1 {{SY1: no argument of the function and no op before this one binds the size '$k.0'}}
  %y = graph.broadcast %x : (tensor<1xf32>) -> tensor<?xf32, #graph.dims<"$k.0">>
  return
}

// -----

func.func @main() {
  // expected-error @+1 {{SY1: no argument of the function and no op before this one binds the size 'total(seq(batch))'}}
  %s = graph.sizes {values = #graph.dims<"total(seq(batch))">} : () -> tensor<1xi64>
  return
}

// -----

// expected-error @+1 {{FN1: 'tensor<?x3xf32>' is no ranked tensor whose sizes have names, such as tensor<?x3xf32, #graph.dims<"batch", 3>>}}
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  return %x : tensor<?x3xf32>
}

// -----

// expected-error @+1 {{FN1: 'i32' is no ranked tensor whose sizes have names}}
func.func @main(%x: i32) {
  return
}

// -----

// expected-error @+1 {{FN2: graph.shares of result 0 must be the number of an argument, of which there are 1, but is 1 : i64}}
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32> {graph.shares = 1 : i64}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error @+1 {{FN3: the function must have a body of one block that ends with func.return; control flow is graph.if, graph.loop and graph.scan}}
func.func private @main(tensor<2xf32>)
