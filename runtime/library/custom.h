/* custom.h: ops of the user's own: who has been registered, and calls that are checked.
 *
 * What such an op says of its results, and what it writes, is not trusted: sizes are checked, and
 * memory after each result is compared with what stood there. The oracle calls the same functions
 * as a run does. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_LIBRARY_CUSTOM_H
#define HEDDLE_LIBRARY_CUSTOM_H

#include "runtime/base/status.h"

#include <heddle/custom_op.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HEDDLE_CUSTOM_GUARD = 64 }; /* bytes after the elements of a result */

/* What a call came to; `value` and `limit` of heddle_custom_outcome_t say more. */
enum {
  HEDDLE_CUSTOM_OK,
  HEDDLE_CUSTOM_MISSING, /* neither registered nor in its library */
  HEDDLE_CUSTOM_SHAPE,   /* `shape` returned `value` */
  HEDDLE_CUSTOM_RESULT,  /* result `value` has no such shape or element type: its size `limit` */
  HEDDLE_CUSTOM_COMPUTE, /* `compute` returned `value` */
  HEDDLE_CUSTOM_OVERRUN, /* `compute` wrote beyond result `value` */
  HEDDLE_CUSTOM_KINDS
};

typedef struct heddle_custom_outcome {
  int32_t kind;
  int64_t value, limit;
} heddle_custom_outcome_t;

/* The op, or NULL. `library`: NULL, or where the path of its library is written, "" for an op that
 * no library brought. */
const heddle_custom_op_t *heddle_custom_registered(const char *domain, const char *name,
                                                   const char **library);
/* As above, from `library` where it is not registered. */
const heddle_custom_op_t *heddle_custom_find(const char *library, const char *domain,
                                             const char *name);
/* Appends what tells the ops that are registered now from those at another time, or in another
 * process: their names, and the size and time of their libraries. */
void heddle_custom_describe(heddle_text_t *text);
/* Bytes of an element, or 0 for a type that ops cannot have. */
int64_t heddle_custom_width(int32_t dtype);
/* Bytes of the elements, or -1 for a tensor that cannot be. */
int64_t heddle_custom_bytes(const heddle_custom_tensor_t *tensor);
/* Calls `shape`. */
heddle_custom_outcome_t heddle_custom_shape(const heddle_custom_op_t *op,
                                            heddle_custom_call_t *call);
/* Calls `compute`, with room for the guard after each output. */
heddle_custom_outcome_t heddle_custom_compute(const heddle_custom_op_t *op,
                                              heddle_custom_call_t *call);

#ifdef __cplusplus
}
#endif
#endif
