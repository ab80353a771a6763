/* custom_op.h: ops of your own, in C, for nodes whose domain and name ONNX does not know.
 *
 * An op is two functions: one says which shapes and element types its results have, the other
 * computes them. They are given to a process by heddle_custom_op_register, or by
 * heddle_custom_op_load as a library that defines
 *
 *   const heddle_custom_op_t *const heddle_custom_ops[] = {&first, &second, NULL};
 *
 * Both functions may be called from several threads at once. docs/guide/custom-ops.md has an
 * example. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_CUSTOM_OP_H
#define HEDDLE_CUSTOM_OP_H

#include <heddle/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_CUSTOM_OP_VERSION 1u
#define HEDDLE_CUSTOM_OP_MAX_RANK 16
#define HEDDLE_CUSTOM_OP_SYMBOL "heddle_custom_ops"

typedef struct heddle_custom_tensor {
  int32_t dtype; /* heddle_dtype_t: whole numbers, floats and bool of 8 bits or more */
  int32_t rank;
  int64_t dims[HEDDLE_CUSTOM_OP_MAX_RANK];
  void *data; /* dense, row-major; NULL for `shape`, and where there are no elements */
} heddle_custom_tensor_t;

typedef struct heddle_custom_call {
  const char *attributes; /* of the node, a line "name=value\n" each; lists have spaces between */
  const heddle_custom_tensor_t *inputs;
  heddle_custom_tensor_t *outputs;
  int32_t input_count, output_count;
  void *data; /* that of the op */
} heddle_custom_call_t;

typedef struct heddle_custom_op {
  uint32_t version; /* HEDDLE_CUSTOM_OP_VERSION */
  const char *domain, *name;
  /* Writes dtype, rank and dims of each output; returns 0, or a number of its own that the message
   * of the failure has. It depends on the attributes and on shapes and types of the inputs alone.
   * The compiler calls it too, with large numbers for sizes known only at run time: what it finds
   * with two sets of them becomes the type of the results. */
  int32_t (*shape)(heddle_custom_call_t *call);
  /* Writes the elements of each output; returns as `shape` does. */
  int32_t (*compute)(heddle_custom_call_t *call);
  void *data;
} heddle_custom_op_t;

/* The op, which must stay where it is, serves all nodes of its domain and name from now on, in this
 * process; one that was registered before follows it. */
HEDDLE_API heddle_status_t *heddle_custom_op_register(const heddle_custom_op_t *op);

/* Registers all ops of a library. Artefacts whose models use them open it by its full path when
 * they run, or where it is gone, by its name where the system looks for libraries, unless the
 * process has registered such an op. It stays loaded. */
HEDDLE_API heddle_status_t *heddle_custom_op_load(const char *library);

#ifdef __cplusplus
}
#endif
#endif
