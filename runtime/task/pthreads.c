/* pthreads.c: a pool over the caller's pthreadpool_t. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/status.h"
#include "runtime/task/pool.h"

#include <pthreadpool.h>
#include <stdlib.h>

typedef struct wrapped_pool {
  heddle_pool_t base;
  pthreadpool_t threads;
} wrapped_pool_t;

static void launch(heddle_pool_t *base, heddle_task_fn task, void *context, size_t count) {
  pthreadpool_parallelize_1d(((wrapped_pool_t *)base)->threads, task, context, count, 0);
}

static void destroy(heddle_pool_t *pool) { free(pool); }

heddle_status_t *heddle_pool_from_pthreadpool(struct pthreadpool *threads, heddle_pool_t **result) {
  if (!threads || !result)
    return heddle_status_make(HEDDLE_USAGE, "heddle_pool_from_pthreadpool: a pool is NULL");
  wrapped_pool_t *pool = calloc(1, sizeof *pool);
  if (!pool)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for a thread pool");
  int count = (int)pthreadpool_get_threads_count(threads);
  pool->base = (heddle_pool_t){count, true, 0, launch, destroy};
  pool->threads = threads;
  *result = &pool->base;
  return NULL;
}
