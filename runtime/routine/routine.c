/* routine.c: reading frames, and memory and workers for what a routine does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/routine/routine.h"

enum { WORTH_WAKING = 20000 }; /* ns: less than this is done before other workers are awake */

heddle_view_t heddle_view_next(int64_t **frame) {
  int64_t *words = *frame;
  *frame = words + 3 + words[2];
  return (heddle_view_t){(void *)(intptr_t)words[0], words[1], words[2], words + 3, words};
}

int64_t heddle_view_count(const heddle_view_t *view, int64_t begin, int64_t end) {
  int64_t count = 1;
  for (int64_t i = begin; i < end; ++i)
    if (view->dims[i] == 0)
      return 0;
  for (int64_t i = begin; i < end; ++i)
    if (view->dims[i] < 0 || __builtin_mul_overflow(count, view->dims[i], &count))
      return -1;
  return count;
}

void *heddle_routine_alloc(heddle_call_t *call, int64_t count, int64_t bytes) {
  int64_t total;
  if (count < 0 || __builtin_mul_overflow(count, bytes, &total))
    total = -1; /* `alloc` reports it */
  return call->alloc(call, total);
}

void *heddle_routine_make(heddle_call_t *call, heddle_view_t *result, int64_t count,
                          int64_t bytes) {
  result->data = heddle_routine_alloc(call, count, bytes);
  result->words[0] = (int64_t)(intptr_t)result->data;
  return result->data;
}

void heddle_routine_launch(heddle_call_t *call, heddle_kernel_fn kernel, const int64_t *args,
                           int64_t tasks, int64_t work, int64_t scratch) {
  if (work >= WORTH_WAKING || scratch > 0)
    call->launch(call, kernel, args, tasks, scratch);
  else if (tasks > 0)
    kernel(args, 0, tasks, NULL);
}
