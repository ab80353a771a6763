/* launches.c: see launches.h. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/launches.h"

#include <stdlib.h>
#include <string.h>

enum {
  LEAST = 2, /* launches that are worth a graph */
  LAUNCH_WORDS = sizeof(heddle_launch_t) / sizeof(int64_t)
};
_Static_assert(sizeof(heddle_launch_t) % sizeof(int64_t) == 0, "launches are words");

bool heddle_launches_add(heddle_launches_t *launches, const heddle_gpu_t *gpu,
                         const heddle_launch_t *launch, const int64_t *words, CUdeviceptr record) {
  int64_t more = gpu->description->kernels[launch->number].words;
  int64_t size = launches->size + LAUNCH_WORDS + more;
  if (size > launches->capacity) {
    int64_t capacity = 2 * size + 256;
    int64_t *grown = realloc(launches->words, (size_t)capacity * sizeof *grown);
    if (!grown)
      return false;
    launches->words = grown;
    launches->capacity = capacity;
  }
  int64_t *end = launches->words + launches->size;
  memcpy(end, launch, sizeof *launch);
  memcpy(end + LAUNCH_WORDS, words, (size_t)more * sizeof *words);
  end[LAUNCH_WORDS] = (int64_t)record;
  launches->size = size;
  ++launches->count;
  return true;
}

static heddle_status_t *launchAll(const heddle_launches_t *launches, heddle_gpu_t *gpu,
                                  CUstream stream, const char **group) {
  heddle_status_t *status = NULL;
  for (int64_t at = 0; !status && at < launches->size;) {
    heddle_launch_t launch;
    memcpy(&launch, launches->words + at, sizeof launch);
    const heddle_device_kernel_t *kernel = &gpu->description->kernels[launch.number];
    void *parameters[] = {launches->words + at + LAUNCH_WORDS, &launch.tasks, &launch.scratch,
                          &launch.stride};
    *group = kernel->group;
    status = HEDDLE_ASK(gpu, kernel->group, cuLaunchKernel, gpu->functions[launch.number],
                        launch.blocks, 1, 1, launch.threads, 1, 1, (unsigned)kernel->shared_bytes,
                        stream, parameters, NULL);
    at += LAUNCH_WORDS + kernel->words;
  }
  return status;
}

static void forget(heddle_graph_t *graph, const heddle_driver_t *driver) {
  if (graph->exec && driver)
    driver->cuGraphExecDestroy(graph->exec);
  free(graph->words);
  *graph = (heddle_graph_t){0};
}

/* The place of the sequence: its own, or that of the one that was launched the longest ago. */
static heddle_graph_t *placeOf(heddle_launches_t *launches, uint64_t hash) {
  heddle_graph_t *oldest = launches->graphs;
  for (int i = 0; i < HEDDLE_MOST_GRAPHS; ++i) {
    heddle_graph_t *graph = &launches->graphs[i];
    if (graph->hash == hash)
      return graph;
    if (graph->last < oldest->last)
      oldest = graph;
  }
  return oldest;
}

/* Makes the sequence a graph. A launch that fails ends what is captured, too. */
static heddle_status_t *capture(heddle_launches_t *launches, heddle_gpu_t *gpu, CUstream stream,
                                heddle_graph_t *place, const char **group) {
  int64_t *words = malloc((size_t)launches->size * sizeof *words);
  if (!words)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for a run of model '%s'", gpu->model);
  memcpy(words, launches->words, (size_t)launches->size * sizeof *words);
  CUgraph made = NULL;
  CUgraphExec exec = NULL;
  heddle_status_t *status =
      HEDDLE_ASK(gpu, *group, cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_THREAD_LOCAL);
  if (!status) {
    status = launchAll(launches, gpu, stream, group);
    heddle_status_t *ended = HEDDLE_ASK(gpu, *group, cuStreamEndCapture, stream, &made);
    if (status)
      heddle_status_destroy(ended);
    else
      status = ended;
  }
  if (!status)
    status = HEDDLE_ASK(gpu, *group, cuGraphInstantiate, &exec, made, 0);
  if (made) {
    heddle_status_t *destroyed = HEDDLE_ASK(gpu, *group, cuGraphDestroy, made);
    if (status)
      heddle_status_destroy(destroyed);
    else
      status = destroyed;
  }
  place->words = words;
  place->size = launches->size;
  place->exec = exec;
  return status;
}

static uint64_t hashOf(const int64_t *words, int64_t size) {
  uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a, by words */
  for (int64_t i = 0; i < size; ++i)
    hash = (hash ^ (uint64_t)words[i]) * UINT64_C(1099511628211);
  return hash ? hash : 1;
}

heddle_status_t *heddle_launches_flush(heddle_launches_t *launches, heddle_gpu_t *gpu,
                                       CUstream stream, const char **group) {
  heddle_status_t *status = NULL;
  if (launches->count < LEAST) {
    status = launchAll(launches, gpu, stream, group);
  } else {
    uint64_t hash = hashOf(launches->words, launches->size);
    heddle_graph_t *place = placeOf(launches, hash);
    bool hasCome = place->hash == hash;
    size_t bytes = (size_t)launches->size * sizeof *launches->words;
    bool isOther = hasCome && place->size &&
                   (place->size != launches->size || memcmp(place->words, launches->words, bytes));
    if (!hasCome)
      forget(place, gpu->driver);
    place->hash = hash;
    place->last = ++launches->time;
    if (hasCome && !place->size)
      status = capture(launches, gpu, stream, place, group);
    if (!status && place->exec && !isOther)
      status = HEDDLE_ASK(gpu, *group, cuGraphLaunch, place->exec, stream);
    else if (!status)
      status = launchAll(launches, gpu, stream, group);
  }
  launches->size = launches->count = 0;
  return status;
}

void heddle_launches_destroy(heddle_launches_t *launches, const heddle_driver_t *driver) {
  for (int i = 0; i < HEDDLE_MOST_GRAPHS; ++i)
    forget(&launches->graphs[i], driver);
  free(launches->words);
}
