/* pool.h: what a session needs of a pool, whoever owns its threads.
 *
 * A pool is two functions and a number. The one with workers lives in threads.c, the one over
 * pthreadpool in pthreads.c: object files that a program without threads does not link.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_TASK_POOL_H
#define HEDDLE_TASK_POOL_H

#include "heddle/runtime.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct heddle_pool {
  int threads;
  bool isExclusive; /* takes one launch at a time: a second one runs inline meanwhile */
  int isBusy;       /* atomic; used when isExclusive */
  void (*parallel)(heddle_pool_t *, heddle_task_fn task, void *context, size_t count);
  void (*destroy)(heddle_pool_t *);
};

/* Calls task(context, i) for each i < count and waits. Inline when count is 1, the pool is NULL or
 * busy with another run's launch. Denormals are zero in each task. */
void heddle_pool_run(heddle_pool_t *pool, heddle_task_fn task, void *context, size_t count);

/* Chunk `index` of `count` of [0, tasks): sizes differ by one at most, for ever the same. */
void heddle_pool_chunk(int64_t tasks, int64_t count, int64_t index, int64_t *begin, int64_t *end);

#ifdef __cplusplus
}
#endif
#endif
