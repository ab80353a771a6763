/* primitives.h: one call of a library with known shapes, as primitives of oneDNN.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_LIBRARY_PRIMITIVES_H
#define HEDDLE_LIBRARY_PRIMITIVES_H

#include "runtime/executable/abi.h"
#include "runtime/library/onednn.h"

enum { HEDDLE_MOST_OPERANDS = 16 };

typedef struct heddle_operand {
  void *data;
  int64_t rank;
  dnnl_dims_t dims, strides;
} heddle_operand_t;

/* A weight in the library's own layout. */
typedef struct heddle_weight {
  struct heddle_weight *next;
  int operand;
  dnnl_memory_desc_t desc;
  void *data;
} heddle_weight_t;

typedef struct heddle_prepared {
  struct heddle_prepared *next;
  bool isKept; /* for other runs with these shapes */
  const heddle_library_call_t *call;
  dnnl_primitive_t primitive;
  int operand_count;
  int arguments[HEDDLE_MOST_OPERANDS]; /* DNNL_ARG_* of each operand */
  dnnl_memory_desc_t descs[HEDDLE_MOST_OPERANDS];
  void *weights[HEDDLE_MOST_OPERANDS]; /* or NULL: where the frame says */
  dnnl_memory_desc_t scratch;
  int64_t scratch_bytes, zero_bytes;               /* memory of a run: the library's, then zeros */
  heddle_operand_t operands[HEDDLE_MOST_OPERANDS]; /* without data: what it was made for */
} heddle_prepared_t;

/* Makes the primitive and brings weights into its layout, or finds them among `weights`. */
dnnl_status_t heddle_primitive_make(const heddle_onednn_t *dnnl, const heddle_library_call_t *call,
                                    const heddle_operand_t *operands, heddle_weight_t **weights,
                                    heddle_prepared_t *prepared);

dnnl_status_t heddle_primitive_run(const heddle_onednn_t *dnnl, const heddle_prepared_t *prepared,
                                   const heddle_operand_t *operands, char *scratch);

#endif
