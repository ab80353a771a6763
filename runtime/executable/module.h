/* module.h: an executable that was found sound, with its public description.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_EXECUTABLE_MODULE_H
#define HEDDLE_EXECUTABLE_MODULE_H

#include "heddle/runtime.h"
#include "runtime/executable/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct heddle_module {
  const heddle_executable_t *executable;
  void (*release)(void *data);
  void *data;
  int users; /* atomic: the module's owner and its sessions */
  int64_t output_dims_count;
  struct heddle_devices *devices; /* runtime/device; NULL where there is the host alone */
  heddle_value_t *values;         /* inputs, then outputs */
  heddle_dim_t *dims;
};

void heddle_module_retain(heddle_module_t *module);

/* As heddle_module_from_executable, naming `origin` (a path or NULL) in messages. */
heddle_status_t *heddle_module_create(const heddle_executable_t *executable, const char *origin,
                                      void (*release)(void *data), void *data,
                                      heddle_module_t **module);

#ifdef __cplusplus
}
#endif
#endif
