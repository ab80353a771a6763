/* values.h: between tensors as callers see them and as kernels do.
 *
 * In kernels an element of less than 8 bits takes a byte, a string is an int64 number of the run's
 * table, and a list is a pointer to heddle_list_t. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_SESSION_VALUES_H
#define HEDDLE_SESSION_VALUES_H

#include "runtime/executable/module.h"
#include "runtime/session/strings.h"

#include <stdbool.h>

/* Whether callers and kernels see the same bytes. */
bool heddle_is_plain(const heddle_io_t *io);

/* Bytes in the form of kernels; as heddle_tensor_bytes otherwise. */
int64_t heddle_inner_bytes(int32_t dtype, int32_t rank, const int64_t *dims);
int64_t heddle_io_bytes(const heddle_io_t *io, const int64_t *dims);

/* An input that is not plain, in the form of kernels. NULL, after the call has failed, when out of
 * memory. */
const void *heddle_value_take(heddle_call_t *call, heddle_strings_t *strings, const heddle_io_t *io,
                              const heddle_tensor_t *tensor);

/* An output that is not plain, in a block of its own that result->owner holds; elements of less
 * than 8 bits are packed where they are instead. False when out of memory. */
bool heddle_value_give(const heddle_strings_t *strings, const heddle_io_t *io, void *inner,
                       const int64_t *dims, heddle_tensor_t *result);
#endif
