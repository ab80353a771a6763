/* pthreads.c: a pool over the caller's pthreadpool_t. Its library is the caller's: nothing here is
 * linked with it, so that programs without such a pool need none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/status.h"
#include "runtime/task/pool.h"

#include <dlfcn.h>
#include <pthreadpool.h>
#include <stdlib.h>

typedef struct wrapped_pool {
  heddle_pool_t base;
  pthreadpool_t threads;
  __typeof__(&pthreadpool_parallelize_1d) parallelize;
} wrapped_pool_t;

static void launch(heddle_pool_t *base, heddle_task_fn task, void *context, size_t count) {
  wrapped_pool_t *pool = (wrapped_pool_t *)base;
  pool->parallelize(pool->threads, task, context, count, 0);
}

static void destroy(heddle_pool_t *pool) { free(pool); }

/* A function of the library that made the caller's pool, which this process has loaded, perhaps
 * without making its names known to all. NULL if it has not. */
static void *find(const char *name) {
  void *function = dlsym(RTLD_DEFAULT, name);
  void *library = function ? NULL : dlopen("libpthreadpool.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (library) {
    function = dlsym(library, name);
    dlclose(library); /* the caller has it open */
  }
  return function;
}

heddle_status_t *heddle_pool_from_pthreadpool(struct pthreadpool *threads, heddle_pool_t **result) {
  if (!threads || !result)
    return heddle_status_make(HEDDLE_USAGE, "heddle_pool_from_pthreadpool: a pool is NULL");
  __typeof__(&pthreadpool_parallelize_1d) parallelize =
      (__typeof__(parallelize))find("pthreadpool_parallelize_1d");
  __typeof__(&pthreadpool_get_threads_count) count =
      (__typeof__(count))find("pthreadpool_get_threads_count");
  if (!parallelize || !count)
    return heddle_status_make(
        HEDDLE_USAGE,
        "heddle_pool_from_pthreadpool: this process has not loaded libpthreadpool.so.0; "
        "link the program with the shared library, or wrap the pool with "
        "heddle_pool_from_callback");
  wrapped_pool_t *pool = calloc(1, sizeof *pool);
  if (!pool)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for a thread pool");
  pool->base = (heddle_pool_t){(int)count(threads), true, 0, launch, destroy};
  pool->threads = threads;
  pool->parallelize = parallelize;
  *result = &pool->base;
  return NULL;
}
