// Indices that are data: a phase before the group finds the least and the greatest and ends the run
// if one is outside; the group itself reads inside of the tensor whatever they are.
// RUN: heddle-opt %s --heddle-plan --heddle-lower --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: %[[LEAST:.*]] = vector.extract
// CHECK: %[[MOST:.*]] = vector.extract
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[LEAST]], %c-16_i64
// CHECK: scf.if %[[BELOW]]
// CHECK: program.fail
// CHECK: %[[ABOVE:.*]] = arith.cmpi sgt, %[[MOST]], %c15_i64
// CHECK: scf.if %[[ABOVE]]
// CHECK: program.fail
// CHECK-LABEL: func.func private @kernel
// CHECK-COUNT-3: scf.for
// CHECK: %[[I:[0-9]+]] = program.load {{.*}} : i64{{$}}
// CHECK-NEXT: arith.cmpi slt, %[[I]], %c0_i64
// CHECK: %[[PLACE:.*]] = arith.select {{.*}} : i64
// CHECK: %[[LOW:.*]] = arith.minsi %[[PLACE]], %c15_i64
// CHECK: arith.maxsi %[[LOW]], %c0_i64
// CHECK-LABEL: @heddle_program_run
func.func @main(%x: tensor<16x4xf32>, %i: tensor<8xi64>) -> tensor<8x4xf32> {
  %y = graph.gather %x, %i {axis = 0} : (tensor<16x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
