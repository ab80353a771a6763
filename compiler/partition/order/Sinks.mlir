// What nobody else waits for runs as soon as that leaves less in memory.
// RUN: heddle-opt %s --heddle-partition="without=stitch,siblings,regions" | FileCheck %s

module {
// The new weight needs the derivative alone, which is given free before the chain goes on; but not
// before everybody has read the old one.
// CHECK-LABEL: @an_update
// CHECK: graph.group "forward"
// CHECK: graph.group "backward"
// CHECK: graph.group "update"
// CHECK: graph.group "next"
// CHECK: graph.group "last"
func.func @an_update(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32> {graph.shares = 1 : i64}) {
  %forward = graph.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("forward")
  %backward = graph.matmul %forward, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("backward")
  %next = graph.matmul %backward, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("next")
  %last = graph.matmul %next, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("last")
  %update = graph.matmul %x, %forward : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("update")
  return %last, %update : tensor<64x64xf32>, tensor<64x64xf32>
}

// It frees nothing before the others have read what it reads.
// CHECK-LABEL: @nothing_is_freed
// CHECK: graph.group "first"
// CHECK: graph.group "last"
// CHECK: graph.group "sink"
func.func @nothing_is_freed(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %first = graph.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("first")
  %last = graph.matmul %first, %first : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("last")
  %sink = graph.matmul %first, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("sink")
  return %last, %sink : tensor<64x64xf32>, tensor<64x64xf32>
}
}
