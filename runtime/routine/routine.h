/* routine.h: ops that compiled code leaves to the runtime, since their control flow depends on the
 * numbers: sorting, selecting, compacting, walking trees, transforms of any length.
 *
 * All have one frame: [m, results, attributes, operands]. m is the number of the first of the op's
 * messages, an attribute is one word, in alphabetical order, and a tensor is
 * [data, dtype, rank, dims]. A result of sizes that the routine finds has data 0; the
 * routine writes its data and dims. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_ROUTINE_ROUTINE_H
#define HEDDLE_ROUTINE_ROUTINE_H

#include "runtime/executable/abi.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor of a frame; `words` is where it is there. */
typedef struct heddle_view {
  void *data;
  int64_t dtype, rank;
  int64_t *dims, *words;
} heddle_view_t;

/* The tensor at *frame, which is moved after it. */
heddle_view_t heddle_view_next(int64_t **frame);
/* The product of dims [begin, end); negative where it is no int64. */
int64_t heddle_view_count(const heddle_view_t *view, int64_t begin, int64_t end);
/* Memory of count * bytes until the end of the run; NULL after a failure. */
void *heddle_routine_alloc(heddle_call_t *call, int64_t count, int64_t bytes);
/* As above, for a result whose dims are in the frame by now: its data is written there. */
void *heddle_routine_make(heddle_call_t *call, heddle_view_t *result, int64_t count, int64_t bytes);
/* Splits [0, tasks) over the workers when `work`, in steps of about a nanosecond, is worth it. */
void heddle_routine_launch(heddle_call_t *call, heddle_kernel_fn kernel, const int64_t *args,
                           int64_t tasks, int64_t work, int64_t scratch);

/* HEDDLE_SERVICE_CUSTOM: the frame is told by abi.h. */
void heddle_service_custom(heddle_call_t *call, int64_t *frame);

/* Whether this key (key.h) is that of a NaN. */
bool heddle_key_is_nan(int64_t dtype, uint64_t key);

typedef struct heddle_entry {
  uint64_t key;
  int64_t index;
} heddle_entry_t;

/* Sorts by key; equal keys stay in order. `other` has room for as many. */
void heddle_entries_sort(heddle_entry_t *entries, heddle_entry_t *other, int64_t count);
/* Leaves the `kept` smallest keys, of equal ones the first, in their order. 0 < kept <= count;
 * `other` has room for count + 1. */
void heddle_entries_select(heddle_entry_t *entries, heddle_entry_t *other, int64_t count,
                           int64_t kept);

/* Result 0 [.., k, ..] and its i64 places: attributes axis, largest; operand x. */
void heddle_routine_topk(heddle_call_t *call, int64_t *frame);
/* Running sums: attributes axis, exclusive, reverse; operand x. */
void heddle_routine_cumsum(heddle_call_t *call, int64_t *frame);
/* i64 [rank, found] (made): operand x of bool. */
void heddle_routine_nonzero(heddle_call_t *call, int64_t *frame);
/* i64 first [found] (made), inverse [n], counts [found] (made): attribute sorted; operand x [n, m].
 */
void heddle_routine_unique(heddle_call_t *call, int64_t *frame);
/* i64 [found, 3] (made): attributes bounded, center; operands boxes, scores, most, overlap, least
 * score. */
void heddle_routine_suppress(heddle_call_t *call, int64_t *frame);
/* [rows, targets]: attributes combine (0 sum, 1 least, 2 largest), mirrored; operands x, nodes,
 * roots, weights; then the address of the scans (compiler/lower/program/ForestScans.h), or 0. */
void heddle_routine_forest(heddle_call_t *call, int64_t *frame);
/* [outer, frequencies, inner, parts]: attributes axis, inverse, length, onesided; operand x. */
void heddle_routine_fourier(heddle_call_t *call, int64_t *frame);

#ifdef __cplusplus
}
#endif
#endif
