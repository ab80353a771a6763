/* pool.c: pools in general, and the one over a caller's own scheduler.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/task/pool.h"

#include "runtime/base/status.h"

#include <stdlib.h>

void heddle_pool_chunk(int64_t tasks, int64_t count, int64_t index, int64_t *begin, int64_t *end) {
  int64_t each = tasks / count, more = tasks % count; /* the first `more` chunks have one more */
  *begin = each * index + (index < more ? index : more);
  *end = *begin + each + (index < more);
}

/* `isReady` and `done` order memory between caller and workers even where the scheduler underneath
 * does not (a caller's callback), or where a race detector cannot see that it does. */
typedef struct launch {
  heddle_task_fn task;
  void *context;
  int isReady;
  size_t done;
} launch_t;

static void runOnWorker(void *data, size_t index) {
  launch_t *launch = data;
  (void)__atomic_load_n(&launch->isReady, __ATOMIC_ACQUIRE);
  launch->task(launch->context, index);
  __atomic_add_fetch(&launch->done, 1, __ATOMIC_RELEASE);
}

static bool acquire(heddle_pool_t *pool) {
  return !pool->isExclusive || !__atomic_exchange_n(&pool->isBusy, 1, __ATOMIC_ACQUIRE);
}

static void release(heddle_pool_t *pool) {
  if (pool->isExclusive)
    __atomic_store_n(&pool->isBusy, 0, __ATOMIC_RELEASE);
}

void heddle_pool_run(heddle_pool_t *pool, heddle_task_fn task, void *context, size_t count) {
  launch_t launch = {task, context, 0, 0};
  if (count > 1 && pool && pool->threads > 1 && acquire(pool)) {
    __atomic_store_n(&launch.isReady, 1, __ATOMIC_RELEASE);
    pool->parallel(pool, runOnWorker, &launch, count);
    (void)__atomic_load_n(&launch.done, __ATOMIC_ACQUIRE);
    release(pool);
    return;
  }
  for (size_t i = 0; i < count; ++i)
    runOnWorker(&launch, i);
}

int heddle_pool_threads(const heddle_pool_t *pool) { return pool ? pool->threads : 1; }

void heddle_pool_destroy(heddle_pool_t *pool) {
  if (pool)
    pool->destroy(pool);
}

typedef struct callback_pool {
  heddle_pool_t base;
  heddle_parallel_fn parallel;
  void *data;
} callback_pool_t;

static void callParallel(heddle_pool_t *base, heddle_task_fn task, void *context, size_t count) {
  callback_pool_t *pool = (callback_pool_t *)base;
  pool->parallel(pool->data, task, context, count);
}

static void freeCallback(heddle_pool_t *pool) { free(pool); }

heddle_status_t *heddle_pool_from_callback(heddle_parallel_fn parallel, void *data, int threads,
                                           heddle_pool_t **result) {
  if (!parallel || !result || threads < 1)
    return heddle_status_make(HEDDLE_USAGE,
                              "heddle_pool_from_callback: needs a function, a place for the pool "
                              "and at least one thread, found %d threads",
                              threads);
  callback_pool_t *pool = calloc(1, sizeof *pool);
  if (!pool)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for a thread pool");
  pool->base.threads = threads;
  pool->base.parallel = callParallel;
  pool->base.destroy = freeCallback;
  pool->parallel = parallel;
  pool->data = data;
  *result = &pool->base;
  return NULL;
}
