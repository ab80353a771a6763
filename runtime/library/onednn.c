/* onednn.c: opens oneDNN and finds its functions. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/library/onednn.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static heddle_onednn_t opened; /* complete when its engine is there */

static bool find(void *library, const char *file, heddle_onednn_t *found, heddle_text_t *why) {
#define X(name)                                                                                    \
  found->name = (__typeof__(found->name))dlsym(library, #name);                                    \
  if (!found->name) {                                                                              \
    heddle_text_add(why, "'%s' has no function '%s': it is not oneDNN 2", file, #name);            \
    return false;                                                                                  \
  }
  HEDDLE_ONEDNN_FUNCTIONS(X)
#undef X
  const dnnl_version_t *version = found->dnnl_version();
  bool hasThreads = version->cpu_runtime == DNNL_RUNTIME_OMP;
  if (version->major != DNNL_VERSION_MAJOR ||
      (!hasThreads && version->cpu_runtime != DNNL_RUNTIME_SEQ)) {
    heddle_text_add(
        why,
        "'%s' is oneDNN %d.%d with CPU runtime %u, but Heddle calls oneDNN %d built for "
        "OpenMP or one thread",
        file, version->major, version->minor, version->cpu_runtime, DNNL_VERSION_MAJOR);
    return false;
  }
  if (hasThreads) { /* of the OpenMP library that this oneDNN needs */
    found->omp_get_max_threads = (int (*)(void))dlsym(library, "omp_get_max_threads");
    found->omp_set_num_threads = (void (*)(int))dlsym(library, "omp_set_num_threads");
  }
  if (hasThreads && (!found->omp_get_max_threads || !found->omp_set_num_threads)) {
    heddle_text_add(why, "the OpenMP library of '%s' cannot be told how many threads to use", file);
    return false;
  }
  if (found->dnnl_engine_create(&found->engine, dnnl_cpu, 0) != dnnl_success) {
    heddle_text_add(why, "'%s' has no engine for this CPU", file);
    return false;
  }
  return true;
}

const heddle_onednn_t *heddle_onednn_open(heddle_text_t *why) {
  pthread_mutex_lock(&mutex);
  if (!opened.engine) {
    const char *named = getenv(HEDDLE_ONEDNN_VARIABLE);
    const char *file = named && *named ? named : HEDDLE_ONEDNN_FILE;
    /* Its threads may outlive every module, so it is never closed. */
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    heddle_onednn_t found = {0};
    if (!library)
      heddle_text_add(why, "'%s' cannot be opened: %s", file, dlerror());
    else if (find(library, file, &found, why))
      opened = found;
  }
  const heddle_onednn_t *result = opened.engine ? &opened : NULL;
  pthread_mutex_unlock(&mutex);
  return result;
}
