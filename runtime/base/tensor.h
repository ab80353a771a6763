/* tensor.h: sizes of tensors, checked for overflow, and memory for them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_BASE_TENSOR_H
#define HEDDLE_BASE_TENSOR_H

#include "heddle/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_TOO_LARGE (-2)

/* Bytes of a dense tensor; HEDDLE_UNKNOWN when a dim is, HEDDLE_TOO_LARGE when they are more than
 * an address space holds (counting a dim of 0 as 1, so that no product of some dims overflows). */
int64_t heddle_tensor_bytes(int32_t dtype, int32_t rank, const int64_t *dims);

/* 64-aligned, not zeroed; NULL when there is none or bytes < 0. Never NULL for 0 bytes. Freed by
 * free(). */
void *heddle_memory_allocate(int64_t bytes);
/* Bytes of the machine. */
int64_t heddle_memory_physical(void);

#ifdef __cplusplus
}
#endif
#endif
