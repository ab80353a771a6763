/* feeds.h: do these tensors fit this module? SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_SESSION_FEEDS_H
#define HEDDLE_SESSION_FEEDS_H

#include "runtime/executable/module.h"

#include <stdbool.h>

/* Checks inputs against the module's description and binds `symbols` to their sizes. One status
 * lists all that is wrong. Without withData only dtypes and shapes are looked at. */
heddle_status_t *heddle_feeds_bind(const heddle_module_t *module, const heddle_tensor_t *inputs,
                                   size_t count, bool withData, int64_t *symbols);

/* Checks the buffers of the caller: large enough where `dims` tells the size, aligned, and apart
 * from each other and from the inputs. `dims` holds the dims of all outputs. */
heddle_status_t *heddle_feeds_check_outputs(const heddle_module_t *module,
                                            const heddle_tensor_t *inputs,
                                            const heddle_tensor_t *outputs, size_t count,
                                            const int64_t *dims);
#endif
