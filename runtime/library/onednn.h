/* onednn.h: the functions of oneDNN 2 that calls need, found in the library when it is opened.
 *
 * Nothing of Heddle is linked with oneDNN: an artefact that calls it asks for it by name.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_LIBRARY_ONEDNN_H
#define HEDDLE_LIBRARY_ONEDNN_H

#include "runtime/base/status.h"

#include <oneapi/dnnl/dnnl.h>

#define HEDDLE_ONEDNN_FILE "libdnnl.so.2"
#define HEDDLE_ONEDNN_VARIABLE "HEDDLE_ONEDNN" /* of the environment: another file */

#define HEDDLE_ONEDNN_FUNCTIONS(X)                                                                 \
  X(dnnl_dilated_convolution_forward_desc_init)                                                    \
  X(dnnl_engine_create)                                                                            \
  X(dnnl_engine_destroy)                                                                           \
  X(dnnl_layer_normalization_forward_desc_init)                                                    \
  X(dnnl_matmul_desc_init)                                                                         \
  X(dnnl_memory_create)                                                                            \
  X(dnnl_memory_desc_equal)                                                                        \
  X(dnnl_memory_desc_get_size)                                                                     \
  X(dnnl_memory_desc_init_by_strides)                                                              \
  X(dnnl_memory_desc_init_by_tag)                                                                  \
  X(dnnl_memory_destroy)                                                                           \
  X(dnnl_post_ops_append_binary)                                                                   \
  X(dnnl_post_ops_append_eltwise)                                                                  \
  X(dnnl_post_ops_create)                                                                          \
  X(dnnl_post_ops_destroy)                                                                         \
  X(dnnl_primitive_attr_create)                                                                    \
  X(dnnl_primitive_attr_destroy)                                                                   \
  X(dnnl_primitive_attr_set_post_ops)                                                              \
  X(dnnl_primitive_attr_set_scratchpad_mode)                                                       \
  X(dnnl_primitive_create)                                                                         \
  X(dnnl_primitive_desc_create)                                                                    \
  X(dnnl_primitive_desc_destroy)                                                                   \
  X(dnnl_primitive_desc_query_md)                                                                  \
  X(dnnl_primitive_destroy)                                                                        \
  X(dnnl_primitive_execute)                                                                        \
  X(dnnl_reorder_primitive_desc_create)                                                            \
  X(dnnl_stream_create)                                                                            \
  X(dnnl_stream_destroy)                                                                           \
  X(dnnl_stream_wait)                                                                              \
  X(dnnl_version)

typedef struct heddle_onednn {
#define X(name) __typeof__(&name) name;
  HEDDLE_ONEDNN_FUNCTIONS(X)
#undef X
  int (*omp_get_max_threads)(void); /* NULL where the library was built without OpenMP */
  void (*omp_set_num_threads)(int);
  dnnl_engine_t engine;
} heddle_onednn_t;

/* Opened once in a process; NULL and why not, as "'libdnnl.so.2' cannot be opened: ...". */
const heddle_onednn_t *heddle_onednn_open(heddle_text_t *why);

#endif
