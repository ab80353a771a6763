/* pthreads.c: the pool over pthreadpool.
 *
 * Workers of pthreadpool spin for about 8 ms after each region before they sleep, which is what
 * the launches of one run want (0.7 us a region against 8-35 us with YIELD_WORKERS) and a waste
 * after it. So a run that came alone ends with an empty region that sends the workers to sleep at
 * once; runs that follow each other within 50 us leave them spinning, and only the last one of
 * such a series costs its 8 ms. Never more threads than the process may use: a spinning worker
 * that shares its core costs a slice of the scheduler, 4-8 ms, a region.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/status.h"
#include "runtime/task/pool.h"

#include <pthreadpool.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define HOT_GAP_NS 50000

typedef struct thread_pool {
  heddle_pool_t base;
  pthreadpool_t threads;
  bool isOwner;
  int64_t lastEndNs; /* atomic, as isHot: runs of several threads may share a pool */
  int isHot;         /* the run before this one ended less than HOT_GAP_NS ago */
  int isAwake;       /* atomic: there was a region since the workers were sent to sleep */
} thread_pool_t;

static int64_t nowNs(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int usableThreads(void) {
  cpu_set_t small;
  if (sched_getaffinity(0, sizeof small, &small) == 0)
    return CPU_COUNT(&small) > 0 ? CPU_COUNT(&small) : 1;
  for (int cpus = 2 * CPU_SETSIZE; cpus <= 1 << 20; cpus *= 2) { /* machines of more CPUs */
    cpu_set_t *set = CPU_ALLOC(cpus);
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    int count = set && sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0)
      return count;
  }
  return 1;
}

static void runRegion(heddle_pool_t *base, heddle_task_fn task, void *context, size_t count) {
  thread_pool_t *pool = (thread_pool_t *)base;
  __atomic_store_n(&pool->isAwake, 1, __ATOMIC_RELAXED);
  pthreadpool_parallelize_1d(pool->threads, task, context, count, 0);
}

static void beginRun(heddle_pool_t *base) {
  thread_pool_t *pool = (thread_pool_t *)base;
  int64_t gapNs = nowNs() - __atomic_load_n(&pool->lastEndNs, __ATOMIC_RELAXED);
  __atomic_store_n(&pool->isHot, gapNs < HOT_GAP_NS, __ATOMIC_RELAXED);
}

static void doNothing(void *context, size_t index) {
  (void)context;
  (void)index;
}

static void endRun(heddle_pool_t *base) {
  thread_pool_t *pool = (thread_pool_t *)base;
  if (!__atomic_load_n(&pool->isHot, __ATOMIC_RELAXED) &&
      __atomic_exchange_n(&pool->isAwake, 0, __ATOMIC_RELAXED))
    pthreadpool_parallelize_1d(pool->threads, doNothing, NULL, (size_t)base->threads,
                               PTHREADPOOL_FLAG_YIELD_WORKERS);
  __atomic_store_n(&pool->lastEndNs, nowNs(), __ATOMIC_RELAXED);
}

static void destroyThreads(heddle_pool_t *base) {
  thread_pool_t *pool = (thread_pool_t *)base;
  if (pool->isOwner)
    pthreadpool_destroy(pool->threads);
  free(pool);
}

static heddle_status_t *wrapThreads(pthreadpool_t threads, bool isOwner, heddle_pool_t **result) {
  thread_pool_t *pool = calloc(1, sizeof *pool);
  if (!pool)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for a thread pool");
  pool->base.threads = (int)pthreadpool_get_threads_count(threads);
  pool->base.isExclusive = true;
  pool->base.parallel = runRegion;
  pool->base.begin = beginRun;
  pool->base.end = endRun;
  pool->base.destroy = destroyThreads;
  pool->threads = threads;
  pool->isOwner = isOwner;
  *result = &pool->base;
  return NULL;
}

heddle_status_t *heddle_pool_create(int threads, heddle_pool_t **result) {
  if (threads < 0 || !result)
    return heddle_status_make(HEDDLE_USAGE,
                              "threads is %d, but must be 0 (all that the process may use) or more",
                              threads);
  int usable = usableThreads();
  if (threads == 0 || threads > usable)
    threads = usable;
  pthreadpool_t created = pthreadpool_create((size_t)threads);
  if (!created)
    return heddle_status_make(HEDDLE_LIMIT, "cannot create a pool of %d threads", threads);
  heddle_status_t *status = wrapThreads(created, true, result);
  if (status)
    pthreadpool_destroy(created);
  return status;
}

heddle_status_t *heddle_pool_from_pthreadpool(struct pthreadpool *threads, heddle_pool_t **result) {
  if (!threads || !result)
    return heddle_status_make(HEDDLE_USAGE, "heddle_pool_from_pthreadpool: a pool is NULL");
  return wrapThreads(threads, false, result);
}
