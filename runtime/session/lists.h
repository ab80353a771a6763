/* lists.h: lists as compiled code holds them: immutable, of tensors in the form of kernels, in the
 * run's memory. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_SESSION_LISTS_H
#define HEDDLE_SESSION_LISTS_H

#include "heddle/runtime.h"
#include "runtime/executable/abi.h"

/* One tensor, shared by all lists that hold it. */
typedef struct heddle_item {
  const void *data;
  int32_t dtype, rank;
  int64_t dims[HEDDLE_MAX_RANK];
} heddle_item_t;

typedef struct heddle_list {
  int64_t count;
  const heddle_item_t *items[];
} heddle_list_t;

/* NULL, after the call has failed, when out of memory. */
heddle_list_t *heddle_list_create(heddle_call_t *call, int64_t count);
heddle_item_t *heddle_item_create(heddle_call_t *call, const void *data, int32_t dtype,
                                  int32_t rank, const int64_t *dims);

void heddle_service_list_make(heddle_call_t *call, int64_t *frame);
void heddle_service_list_insert(heddle_call_t *call, int64_t *frame);
void heddle_service_list_erase(heddle_call_t *call, int64_t *frame);
void heddle_service_list_at(heddle_call_t *call, int64_t *frame);
void heddle_service_list_length(heddle_call_t *call, int64_t *frame);
void heddle_service_list_concat(heddle_call_t *call, int64_t *frame);
void heddle_service_list_split(heddle_call_t *call, int64_t *frame);
void heddle_service_list_cast(heddle_call_t *call, int64_t *frame);
void heddle_service_list_rank(heddle_call_t *call, int64_t *frame);
#endif
