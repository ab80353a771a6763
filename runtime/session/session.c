/* session.c: sessions and their memory. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/session/session.h"

#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "runtime/session/feeds.h"

#include <stdlib.h>

/* Weak: a program that asks for no threads does not link this. */
#pragma weak heddle_pool_create

static heddle_status_t *choosePool(heddle_session_t *session,
                                   const heddle_session_options_t *options) {
  int threads = options ? options->threads : 0;
  bool isKnownSize = !options || options->size == sizeof *options ||
                     options->size == offsetof(heddle_session_options_t, profile);
  if (!isKnownSize)
    return heddle_status_make(HEDDLE_USAGE,
                              "session options: size is %zu, but this runtime's is %zu",
                              options->size, sizeof *options);
  if (threads < 0)
    return heddle_status_make(
        HEDDLE_USAGE,
        "session options: threads is %d, but must be 0 (all that the process may use) or more",
        threads);
  if (options && options->pool) {
    session->pool = options->pool;
    return NULL;
  }
  if (threads == 1 || (threads == 0 && !heddle_pool_create))
    return NULL;
  if (!heddle_pool_create)
    return heddle_status_make(
        HEDDLE_USAGE,
        "session options: threads is %d, but this program was linked without "
        "threads; link it with '-Wl,-u,heddle_pool_create' and libheddle_pool.a",
        threads);
  session->is_pool_owner = true;
  heddle_status_t *status = heddle_pool_create(threads, &session->pool);
  if (!status && heddle_pool_threads(session->pool) == 1) {
    heddle_pool_destroy(session->pool);
    session->pool = NULL;
  }
  return status;
}

heddle_status_t *heddle_session_create(heddle_module_t *module,
                                       const heddle_session_options_t *options,
                                       heddle_session_t **result) {
  if (!module || !result)
    return heddle_status_make(HEDDLE_USAGE, "a session needs a module and a place, found NULL");
  heddle_session_t *session = calloc(1, sizeof *session);
  if (!session)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for a session");
  session->results = heddle_results_create();
  heddle_status_t *status = session->results
                                ? choosePool(session, options)
                                : heddle_status_make(HEDDLE_LIMIT, "out of memory for a session");
  if (!status)
    status = heddle_calls_create(module->executable, heddle_pool_threads(session->pool),
                                 &session->calls);
  if (status) {
    if (session->is_pool_owner && session->pool)
      heddle_pool_destroy(session->pool);
    if (session->results)
      heddle_results_close(session->results);
    free(session);
    return status;
  }
  pthread_mutex_init(&session->mutex, NULL);
  if (options && options->size == sizeof *options) {
    session->profile = options->profile;
    session->profile_data = options->profile_data;
  }
  session->module = module;
  heddle_module_retain(module);
  *result = session;
  return NULL;
}

void heddle_session_destroy(heddle_session_t *session) {
  if (!session)
    return;
  while (session->idle) {
    heddle_workspace_t *workspace = session->idle;
    session->idle = workspace->next;
    heddle_workspace_destroy(workspace);
  }
  heddle_calls_destroy(session->calls);
  if (session->is_pool_owner)
    heddle_pool_destroy(session->pool);
  heddle_results_close(session->results);
  heddle_module_destroy(session->module);
  pthread_mutex_destroy(&session->mutex);
  free(session);
}

static heddle_workspace_t *createWorkspace(const heddle_module_t *module) {
  size_t symbols = (size_t)module->executable->symbol_count;
  size_t inputs = (size_t)module->executable->input_count;
  size_t outputs = (size_t)module->executable->output_count;
  size_t dims = (size_t)module->output_dims_count;
  size_t views = module->executable->row_block ? 2 : 1; /* of the batch, and of a block of rows */
  size_t words = symbols + dims, pointers = inputs + outputs;
  size_t arenas = 1 + (size_t)module->executable->device_count;
  heddle_workspace_t *workspace =
      calloc(1, sizeof *workspace + outputs * sizeof(heddle_block_t) + arenas * sizeof(int64_t) +
                    views * (words * sizeof(int64_t) + pointers * sizeof(void *)));
  if (!workspace)
    return NULL;
  workspace->symbols = (int64_t *)(workspace + 1);
  workspace->output_dims = workspace->symbols + symbols;
  workspace->owned = (heddle_block_t *)(workspace->output_dims + dims);
  workspace->inputs = (const void **)(workspace->owned + outputs);
  workspace->outputs = (void **)(workspace->inputs + inputs);
  workspace->arena_bytes = (int64_t *)(workspace->outputs + outputs);
  if (views > 1) {
    workspace->rows.symbols = workspace->arena_bytes + arenas;
    workspace->rows.output_dims = workspace->rows.symbols + symbols;
    workspace->rows.inputs = (const void **)(workspace->rows.output_dims + dims);
    workspace->rows.outputs = (void **)(workspace->rows.inputs + inputs);
  }
  workspace->strings.constants = module->executable->strings;
  workspace->strings.constant_count = module->executable->string_count;
  return workspace;
}

heddle_workspace_t *heddle_workspace_take(heddle_session_t *session) {
  pthread_mutex_lock(&session->mutex);
  heddle_workspace_t *workspace = session->idle;
  if (workspace)
    session->idle = workspace->next;
  pthread_mutex_unlock(&session->mutex);
  if (!workspace) {
    workspace = createWorkspace(session->module);
    __atomic_add_fetch(&session->workspaces, workspace != NULL, __ATOMIC_RELAXED);
  }
  if (workspace)
    workspace->used_scratch_bytes = 0;
  return workspace;
}

void heddle_workspace_give(heddle_session_t *session, heddle_workspace_t *workspace) {
  pthread_mutex_lock(&session->mutex);
  workspace->next = session->idle;
  session->idle = workspace;
  pthread_mutex_unlock(&session->mutex);
}

void heddle_workspace_destroy(heddle_workspace_t *workspace) {
  free(workspace->arena.data);
  free(workspace->scratch.data);
  heddle_streams_destroy(workspace->streams);
  heddle_strings_free(&workspace->strings);
  free(workspace);
}

bool heddle_workspace_grow(heddle_session_t *session, heddle_block_t *block, int64_t bytes) {
  if (block->data && bytes <= block->bytes)
    return true;
  free(block->data);
  int64_t before = block->bytes;
  block->data = heddle_memory_allocate(bytes);
  block->bytes = block->data ? bytes : 0;
  pthread_mutex_lock(&session->mutex);
  session->memory.held_bytes += block->bytes - before;
  if (session->memory.held_bytes > session->memory.peak_bytes)
    session->memory.peak_bytes = session->memory.held_bytes;
  pthread_mutex_unlock(&session->mutex);
  return block->data != NULL;
}

static heddle_status_t *noWorkspace(void) {
  return heddle_status_make(HEDDLE_LIMIT, "out of memory for a run");
}

heddle_status_t *heddle_session_output_shapes(heddle_session_t *session,
                                              const heddle_tensor_t *inputs, size_t inputCount,
                                              heddle_tensor_t *outputs, size_t outputCount) {
  if (!session)
    return heddle_status_make(HEDDLE_USAGE, "the session is NULL");
  const heddle_executable_t *executable = session->module->executable;
  if (outputCount != (size_t)executable->output_count || (outputCount && !outputs))
    return heddle_status_make(HEDDLE_USAGE, "model '%s': %zu outputs given, but it has %d",
                              executable->model, outputCount, executable->output_count);
  heddle_workspace_t *workspace = heddle_workspace_take(session);
  if (!workspace)
    return noWorkspace();
  heddle_status_t *status =
      heddle_feeds_bind(session->module, inputs, inputCount, false, workspace->symbols);
  if (!status)
    status = heddle_run_sizes(session->module, workspace->symbols, workspace->output_dims,
                              workspace->arena_bytes);
  const int64_t *dims = workspace->output_dims;
  for (size_t i = 0; !status && i < outputCount; dims += executable->outputs[i++].rank) {
    if (executable->outputs[i].kind == HEDDLE_IO_ANY_RANK) {
      outputs[i].dtype = executable->outputs[i].dtype;
      outputs[i].rank = HEDDLE_UNKNOWN;
      outputs[i].bytes = HEDDLE_UNKNOWN;
      continue;
    }
    if (executable->outputs[i].kind != HEDDLE_IO_TENSOR) {
      outputs[i].dtype = HEDDLE_SEQUENCE;
      outputs[i].rank = 1;
      outputs[i].dims[0] = outputs[i].bytes = HEDDLE_UNKNOWN;
      continue;
    }
    outputs[i].dtype = executable->outputs[i].dtype;
    outputs[i].rank = executable->outputs[i].rank;
    for (int32_t j = 0; j < outputs[i].rank; ++j)
      outputs[i].dims[j] = dims[j];
    outputs[i].bytes = outputs[i].dtype == HEDDLE_STRING /* with the bytes of the strings */
                           ? HEDDLE_UNKNOWN
                           : heddle_tensor_bytes(outputs[i].dtype, outputs[i].rank, dims);
  }
  heddle_workspace_give(session, workspace);
  return status;
}

heddle_status_t *heddle_session_run(heddle_session_t *session, const heddle_tensor_t *inputs,
                                    size_t inputCount, heddle_tensor_t *outputs,
                                    size_t outputCount) {
  if (!session)
    return heddle_status_make(HEDDLE_USAGE, "the session is NULL");
  heddle_workspace_t *workspace = heddle_workspace_take(session);
  if (!workspace)
    return noWorkspace();
  heddle_status_t *status =
      heddle_feeds_bind(session->module, inputs, inputCount, true, workspace->symbols);
  if (!status)
    status = heddle_run(session, workspace, inputs, outputs, outputCount);
  heddle_workspace_give(session, workspace);
  return status;
}

heddle_memory_t heddle_session_memory(const heddle_session_t *session) {
  heddle_session_t *locked = (heddle_session_t *)session; /* the mutex is not part of the value */
  pthread_mutex_lock(&locked->mutex);
  heddle_memory_t memory = locked->memory;
  pthread_mutex_unlock(&locked->mutex);
  memory.kept_bytes = heddle_results_kept(session->results);
  return memory;
}

void heddle_session_seed(heddle_session_t *session, uint64_t seed) {
  __atomic_store_n(&session->seed, seed, __ATOMIC_RELAXED);
}

int heddle_session_threads(const heddle_session_t *session) {
  return heddle_pool_threads(session->pool);
}
