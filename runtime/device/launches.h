/* launches.h: the kernels that a run launches one after the other, without a word of the host
 * between: asked for one by one, and given to the driver together. A sequence that comes again
 * becomes a graph, which one call launches. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_DEVICE_LAUNCHES_H
#define HEDDLE_DEVICE_LAUNCHES_H

#include "runtime/device/device.h"

/* Graphs that are kept: sequences of a model for so many sizes. */
enum { HEDDLE_MOST_GRAPHS = 8 };

typedef struct heddle_launch {
  int64_t number; /* of the kernel */
  unsigned blocks, threads;
  int64_t tasks, scratch, stride; /* its parameters, beside the words */
} heddle_launch_t;

typedef struct heddle_graph {
  uint64_t hash; /* of the sequence; 0: none */
  int64_t last;  /* when it was launched, counted in launches */
  int64_t size;  /* of the words, as in heddle_launches_t; 0: it has come once, and is no graph */
  int64_t *words;
  CUgraphExec exec;
} heddle_graph_t;

typedef struct heddle_launches {
  int64_t *words; /* of each launch: a heddle_launch_t, and the kernel's words */
  int64_t size, capacity, count, time;
  heddle_graph_t graphs[HEDDLE_MOST_GRAPHS];
} heddle_launches_t;

/* Asks for one more, with the words of a kernel, of which `record` takes the place of word 0.
 * False: there is no memory. */
bool heddle_launches_add(heddle_launches_t *launches, const heddle_gpu_t *gpu,
                         const heddle_launch_t *launch, const int64_t *words, CUdeviceptr record);
/* Launches all that was asked for. *group becomes that of the last one. */
heddle_status_t *heddle_launches_flush(heddle_launches_t *launches, heddle_gpu_t *gpu,
                                       CUstream stream, const char **group);
/* With the GPU's context, or with `driver` NULL where that is lost. */
void heddle_launches_destroy(heddle_launches_t *launches, const heddle_driver_t *driver);

#endif
