// A model's program as C: kernels on a range of tasks, the run that launches them, sizes that are
// checked before.
// RUN: heddle-opt %s --split-input-file --heddle-plan="target=c" --heddle-lower --heddle-print-c | FileCheck %s

// CHECK: static inline uint64_t h_multiply_checked(
// CHECK: static void h_launch(unsigned char *handle,
// The kernel has its tensors in slots of its arguments.
// CHECK: static void h_kernel{{[_0-9a-f]*}}(unsigned char *a0, uint64_t a1, uint64_t a2, unsigned char *a3);
// CHECK: static void [[KERNEL:h_kernel[_0-9a-f]*]](unsigned char *a0, uint64_t a1, uint64_t a2, unsigned char *a3) {
// CHECK: h_word(a0 + 8)
// CHECK: for (int64_t
// CHECK: static void h_start_kernel{{[_0-9a-f]*}}(unsigned char *a0,
// CHECK: h_launch(a0, [[KERNEL]],
// CHECK: static uint32_t h_heddle_program_run(unsigned char *a0) {
// CHECK: ((h_run *)(void *)a0)->symbols;
// CHECK: h_start_kernel
// CHECK: static uint32_t h_heddle_program_sizes(unsigned char *a0, unsigned char *a1, unsigned char *a2, unsigned char *a3) {
// CHECK: h_multiply_checked(
func.func @main(%x: tensor<?x?xf32, #graph.dims<"a", "b">>) -> tensor<?x?xf32, #graph.dims<"a", "b">> {
  %y = graph.neg %x : tensor<?x?xf32, #graph.dims<"a", "b">>
  return %y : tensor<?x?xf32, #graph.dims<"a", "b">>
}

// -----

// An index is compared with the size before anything is read; a wrong one ends the run with a
// message and two numbers.
// CHECK: static void h_fail(unsigned char *handle, int64_t message, int64_t value, int64_t limit) {
// CHECK: static void h_kernel
// CHECK: if ({{v[0-9]+}}) {
// CHECK: h_fail({{.*}}, (int64_t)
func.func @main(%x: tensor<10x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  %y = graph.gather %x, %i {axis = 0 : i64} : (tensor<10x4xf32>, tensor<3xi64>) -> tensor<3x4xf32> loc("y")
  return %y : tensor<3x4xf32>
}
