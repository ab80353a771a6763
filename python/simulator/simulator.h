/* simulator.h: time and memory that a plan of a graph takes on several devices, computed by
 * simulating it. heddle_lab.go (Python) searches plans with it. One evaluation is a single-threaded
 * function of its arguments, so equal plans have equal results. SPDX-License-Identifier: Apache-2.0
 */
#ifndef HEDDLE_SIMULATOR_H
#define HEDDLE_SIMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the simulator needs to know about the kind of a node. */
enum {
  HEDDLE_SIMULATOR_FUSIBLE = 1,  /* can be computed within the kernel of its readers */
  HEDDLE_SIMULATOR_HEAVY = 2,    /* a contraction: at most one per kernel, never recomputed */
  HEDDLE_SIMULATOR_RESIDENT = 4, /* no kernel: there before the graph runs, such as a weight */
};

/* Nodes are in topological order. The arrays are copied. */
typedef struct heddle_simulator_graph {
  int64_t nodes;
  const double *flops;
  const double *bytes;        /* of the result of a node */
  const double *held_bytes;   /* taken during the whole run on the node's device */
  const uint8_t *traits;      /* HEDDLE_SIMULATOR_... */
  const int32_t *colocate;    /* the node whose device a node shares, or -1 */
  const int64_t *first_input; /* nodes + 1 offsets into `inputs` */
  const int32_t *inputs;
} heddle_simulator_graph_t;

/* SI units: FLOP/s, bytes/s, seconds, bytes. Of links: [from * devices + to]. */
typedef struct heddle_simulator_machine {
  int32_t devices;
  const double *flops_per_second, *bytes_per_second, *launch_seconds, *memory_bytes;
  const double *link_bytes_per_second, *link_seconds;
} heddle_simulator_machine_t;

typedef struct heddle_simulator heddle_simulator_t;

heddle_simulator_t *heddle_simulator_create(const heddle_simulator_graph_t *graph,
                                            const heddle_simulator_machine_t *machine);
void heddle_simulator_destroy(heddle_simulator_t *simulator);

/* Simulates `count` plans, each a row of `nodes` elements: a node's device, its priority (greater
 * runs first, then the node of the smaller index) and whether it is fused into all of its readers.
 * Writes the makespan in seconds and, per device, the peak of the memory in bytes. */
void heddle_simulator_run(heddle_simulator_t *simulator, int64_t count, const int32_t *device,
                          const double *priority, const uint8_t *fuse, double *makespan,
                          double *peak_bytes);

/* What the last plan that was simulated did, per node: the device, when its kernel could have
 * started, started and finished (0 for a resident node; a fused node has those of the first kernel
 * that contains it), and whether it was fused. */
void heddle_simulator_trace(const heddle_simulator_t *simulator, int32_t *device, double *ready,
                            double *start, double *finish, uint8_t *fused);

/* The kernels that `fuse` makes, per root: FLOPs, bytes of memory traffic, and offsets of the roots
 * that it reads. `reads` has room for `capacity` elements; returns how many there are. A node that
 * is fused has none. `owner` is the first kernel that contains a node. */
int64_t heddle_simulator_kernels(heddle_simulator_t *simulator, const uint8_t *fuse, double *flops,
                                 double *traffic_bytes, int32_t *owner, int64_t *first_read,
                                 int32_t *reads, int64_t capacity);

#ifdef __cplusplus
}
#endif
#endif
