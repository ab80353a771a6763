// A function of a library: its sizes and strides are written to an array, a service of the runtime calls it,
// and a second kernel does what it cannot.
// RUN: heddle-opt %s --split-input-file --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: %[[ARRAY:.*]] = program.array
// CHECK: program.service library %{{.*}}(%{{.*}}, %[[ARRAY]])
// CHECK-LABEL: func.func private @kernel
// CHECK: %[[X:.*]] = program.load {{.*}} : vector<8xf32>
// CHECK-NEXT: %[[Y:.*]] = math.tanh %[[X]]
// CHECK-NEXT: program.store %[[Y]]
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<48x128xf32>, %w: tensor<128x64xf32>) -> tensor<48x64xf32> {
  %g = graph.group "dense" {mechanism = "contraction", schedule = {mechanism = "onednn.matmul"}} : tensor<48x64xf32> {
    %y = graph.matmul %x, %w : (tensor<48x128xf32>, tensor<128x64xf32>) -> tensor<48x64xf32>
    %z = graph.tanh %y : tensor<48x64xf32>
    graph.yield %z : tensor<48x64xf32>
  }
  return %g : tensor<48x64xf32>
}
