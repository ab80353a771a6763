/* session.h: what a session keeps, and one run's view of it.
 *
 * Every run takes a workspace from a free list and gives it back, so any number of runs go on at
 * once and none allocates when sizes are as before. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_SESSION_SESSION_H
#define HEDDLE_SESSION_SESSION_H

#include "runtime/base/results.h"
#include "runtime/device/stream.h"
#include "runtime/executable/module.h"
#include "runtime/library/calls.h"
#include "runtime/session/strings.h"
#include "runtime/task/pool.h"

#include <pthread.h>

typedef struct heddle_block {
  void *data;
  int64_t bytes;
} heddle_block_t;

/* Memory of one run. Blocks only grow. */
typedef struct heddle_workspace {
  struct heddle_workspace *next;
  heddle_block_t arena, scratch;
  int64_t used_scratch_bytes; /* of the run under way */
  heddle_streams_t *streams;  /* of the devices; NULL before the first run, and without */
  int64_t device_bytes;       /* of them, as counted in the session's memory */
  int64_t *symbols;           /* one per symbol */
  int64_t *arena_bytes;       /* of the host, then of each device */
  int64_t *output_dims;       /* of all outputs, one after the other */
  const void **inputs;        /* one an input */
  void **outputs;             /* one per output */
  heddle_block_t *owned;      /* one per output: what the runtime allocated for it */
  struct heddle_rows {        /* of one block of rows (blocks.h); empty where there are none */
    int64_t *symbols, *output_dims;
    const void **inputs;
    void **outputs;
  } rows;
  heddle_strings_t strings; /* holds the model's own between runs */
} heddle_workspace_t;

struct heddle_session {
  heddle_module_t *module;
  heddle_pool_t *pool; /* NULL: one thread */
  bool is_pool_owner;
  void (*profile)(void *data, int64_t group, int64_t nanoseconds); /* or NULL */
  void *profile_data;
  heddle_calls_t *calls; /* of libraries; NULL without */
  heddle_results_t *results;
  int64_t workspaces;    /* atomic: those that there are */
  uint64_t seed;         /* atomic: of the next run's random numbers */
  pthread_mutex_t mutex; /* of all below */
  heddle_workspace_t *idle;
  heddle_memory_t memory;
};

/* NULL when out of memory. */
heddle_workspace_t *heddle_workspace_take(heddle_session_t *session);
void heddle_workspace_give(heddle_session_t *session, heddle_workspace_t *workspace);
void heddle_workspace_destroy(heddle_workspace_t *workspace);

/* Makes the block at least this large, forgetting what it held. False when out of memory. */
bool heddle_workspace_grow(heddle_session_t *session, heddle_block_t *block, int64_t bytes);

/* Runs with inputs that were checked and bound to workspace->symbols. */
heddle_status_t *heddle_run(heddle_session_t *session, heddle_workspace_t *workspace,
                            const heddle_tensor_t *inputs, heddle_tensor_t *outputs,
                            size_t output_count);

/* Calls the executable's `sizes`, which writes the dims of outputs and the bytes of the arenas of
 * the host and each device. */
heddle_status_t *heddle_run_sizes(const heddle_module_t *module, const int64_t *symbols,
                                  int64_t *output_dims, int64_t *arena_bytes);
#endif
