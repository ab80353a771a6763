// What groups compute again so that at most so many bytes are alive between them. A tensor has 4096
// bytes here; arguments, and what is returned, are the caller's memory.
// RUN: heddle-opt %s --split-input-file --heddle-rematerialise="bytes=8192" --verify-diagnostics | FileCheck %s
// RUN: heddle-opt %s --split-input-file --heddle-rematerialise="bytes=12288" | FileCheck %s --check-prefix=ENOUGH
// RUN: heddle-opt %s --split-input-file --heddle-rematerialise="share=0.9" | FileCheck %s
// RUN: heddle-opt %s --split-input-file --heddle-rematerialise="share=0.01" | FileCheck %s --check-prefix=ENOUGH
// RUN: heddle-opt %s --split-input-file --heddle-rematerialise="bytes=8192 temporaries=c=100" 2>&1 | FileCheck %s --check-prefix=WHILE
// RUN: not heddle-opt %s --split-input-file --heddle-rematerialise="temporaries=c" 2>&1 | FileCheck %s --check-prefix=WRONG

// ENOUGH-NOT: ~1
// WHILE: remark: 8292 bytes are alive at most
// WRONG: error: 'c' is not group=bytes

!t = tensor<1024xf32>

// `a` is read at once and at the end: it goes meanwhile, and `e` reads another one.
// CHECK-LABEL: @main
// CHECK: %[[D:.*]] = graph.group "d"
// CHECK: %[[AGAIN:.*]] = graph.group "a~1" {mechanism = "pointwise"}
// CHECK-NEXT: graph.exp %arg0
// CHECK: graph.group "e"
// CHECK-NEXT: graph.add %[[D]], %[[AGAIN]]
// expected-remark @+1 {{8192 bytes are alive at most, for 19.4 % more time}}
func.func @main(%x: !t) -> !t {
  %a = graph.group "a" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %x : !t
    graph.yield %0 : !t
  }
  %b = graph.group "b" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %a : !t
    graph.yield %0 : !t
  }
  %c = graph.group "c" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %b : !t
    graph.yield %0 : !t
  }
  %d = graph.group "d" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %c : !t
    graph.yield %0 : !t
  }
  %e = graph.group "e" {mechanism = "pointwise"} : !t {
    %0 = graph.add %d, %a : !t
    graph.yield %0 : !t
  }
  return %e : !t
}

// -----

!t = tensor<1024xf32>

// Of a group with two results, one of which is kept, the other is computed from that one.
// CHECK-LABEL: @main
// CHECK: %[[P:.*]]:2 = graph.group "p" {mechanism = "contraction"}
// CHECK: %[[C:.*]] = graph.group "c"
// CHECK: %[[AGAIN:.*]] = graph.group "p~1" {mechanism = "pointwise"}
// CHECK-NEXT: graph.tanh %[[P]]#0
// CHECK: graph.group "d"
// CHECK-NEXT: graph.sub %[[C]], %[[AGAIN]]
// expected-remark @+1 {{8192 bytes are alive at most, for 16.6 % more time}}
func.func @main(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %p:2 = graph.group "p" {mechanism = "contraction"} : tensor<32x32xf32>, tensor<32x32xf32> {
    %0 = graph.matmul %x, %w : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
    %1 = graph.tanh %0 : tensor<32x32xf32>
    graph.yield %0, %1 : tensor<32x32xf32>, tensor<32x32xf32>
  }
  %a = graph.group "a" {mechanism = "pointwise"} : tensor<32x32xf32> {
    %0 = graph.add %p#0, %p#1 : tensor<32x32xf32>
    graph.yield %0 : tensor<32x32xf32>
  }
  %b = graph.group "b" {mechanism = "pointwise"} : tensor<32x32xf32> {
    %0 = graph.exp %a : tensor<32x32xf32>
    graph.yield %0 : tensor<32x32xf32>
  }
  %c = graph.group "c" {mechanism = "pointwise"} : tensor<32x32xf32> {
    %0 = graph.mul %b, %p#0 : tensor<32x32xf32>
    graph.yield %0 : tensor<32x32xf32>
  }
  %d = graph.group "d" {mechanism = "pointwise"} : tensor<32x32xf32> {
    %0 = graph.sub %c, %p#1 : tensor<32x32xf32>
    graph.yield %0 : tensor<32x32xf32>
  }
  return %d, %p#0 : tensor<32x32xf32>, tensor<32x32xf32>
}

// -----

!t = tensor<1024xf32>

// A result of no group stays, since no kernel computes it.
// CHECK-LABEL: @main
// CHECK-NOT: ~1
// expected-remark @+1 {{12288 bytes are alive at most, for 0.0 % more time}}
func.func @main(%x: !t) -> !t {
  %a = graph.cumsum %x {axis = 0 : i64} : (!t) -> !t
  %b = graph.group "b" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %a : !t
    graph.yield %0 : !t
  }
  %c = graph.group "c" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %b : !t
    graph.yield %0 : !t
  }
  %d = graph.group "d" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %c : !t
    graph.yield %0 : !t
  }
  %e = graph.group "e" {mechanism = "pointwise"} : !t {
    %0 = graph.add %d, %a : !t
    graph.yield %0 : !t
  }
  return %e : !t
}

// -----

!t = tensor<1024xf32>

// `a` reads what `d` writes over: computed after that, it would be another one.
// CHECK-LABEL: @main
// CHECK-NOT: ~1
// expected-remark @+1 {{12288 bytes are alive at most, for 0.0 % more time}}
func.func @main(%x: !t) -> (!t, !t {graph.shares = 0 : i64}) {
  %a = graph.group "a" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %x : !t
    graph.yield %0 : !t
  }
  %b = graph.group "b" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %a : !t
    graph.yield %0 : !t
  }
  %c = graph.group "c" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %b : !t
    graph.yield %0 : !t
  }
  %d = graph.group "d" {mechanism = "pointwise"} : !t {
    %0 = graph.exp %c : !t
    graph.yield %0 : !t
  }
  %e = graph.group "e" {mechanism = "pointwise"} : !t {
    %0 = graph.add %d, %a : !t
    graph.yield %0 : !t
  }
  return %e, %d : !t, !t
}
