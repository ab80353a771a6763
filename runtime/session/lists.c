/* lists.c: the services on lists. Frames are as enum heddle_service of abi.h says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/session/lists.h"

#include "runtime/session/values.h"

#include <stdbool.h>
#include <string.h>

static const heddle_list_t *listOf(int64_t handle) {
  return (const heddle_list_t *)(uintptr_t)handle;
}
static int64_t handleOf(const void *list) { return (int64_t)(uintptr_t)list; }

heddle_list_t *heddle_list_create(heddle_call_t *call, int64_t count) {
  heddle_list_t *list =
      call->alloc(call, (int64_t)sizeof *list + count * (int64_t)sizeof *list->items);
  if (list)
    list->count = count;
  return list;
}

heddle_item_t *heddle_item_create(heddle_call_t *call, const void *data, int32_t dtype,
                                  int32_t rank, const int64_t *dims) {
  heddle_item_t *item = call->alloc(call, sizeof *item);
  if (!item)
    return NULL;
  item->data = data;
  item->dtype = dtype;
  item->rank = rank;
  memcpy(item->dims, dims, (size_t)rank * sizeof *dims);
  return item;
}

/* A copy of the tensor [data, rank, dims] in a frame: the arena is used again. */
static const heddle_item_t *copyItem(heddle_call_t *call, int32_t dtype, const int64_t *tensor) {
  int64_t bytes = heddle_inner_bytes(dtype, (int32_t)tensor[1], tensor + 2);
  void *data = call->alloc(call, bytes);
  if (!data)
    return NULL;
  if (bytes > 0)
    memcpy(data, (const void *)(uintptr_t)tensor[0], (size_t)bytes);
  return heddle_item_create(call, data, dtype, (int32_t)tensor[1], tensor + 2);
}

void heddle_service_list_make(heddle_call_t *call, int64_t *frame) {
  int64_t count = frame[2];
  const int64_t *next = frame + 3;
  frame[0] = 0;
  if (frame[1]) /* absent */
    return;
  heddle_list_t *list = heddle_list_create(call, count);
  for (int64_t i = 0; list && i < count; ++i, next += 3 + next[2]) {
    list->items[i] = copyItem(call, (int32_t)next[0], next + 1);
    if (!list->items[i])
      return;
  }
  frame[0] = handleOf(list);
}

/* Counted from 0; false, after the call has failed, when it is outside of [-count, limit). */
static bool findPosition(heddle_call_t *call, int64_t message, int64_t position, int64_t count,
                         int64_t limit, int64_t *found) {
  *found = position < 0 ? position + count : position;
  if (position >= -count && *found < limit)
    return true;
  call->fail(call, message, position, count);
  return false;
}

void heddle_service_list_insert(heddle_call_t *call, int64_t *frame) {
  const heddle_list_t *list = listOf(frame[2]);
  int64_t count = list ? list->count : 0, place = count;
  if (frame[3] != INT64_MAX && !findPosition(call, frame[1], frame[3], count, count + 1, &place))
    return;
  const heddle_item_t *item = copyItem(call, (int32_t)frame[4], frame + 5);
  heddle_list_t *longer = item ? heddle_list_create(call, count + 1) : NULL;
  if (!longer)
    return;
  for (int64_t i = 0; i <= count; ++i)
    longer->items[i] = i == place ? item : list->items[i - (i > place)];
  frame[0] = handleOf(longer);
}

void heddle_service_list_erase(heddle_call_t *call, int64_t *frame) {
  const heddle_list_t *list = listOf(frame[2]);
  int64_t count = list ? list->count : 0, place;
  if (!findPosition(call, frame[1], frame[3], count, count, &place))
    return;
  heddle_list_t *shorter = heddle_list_create(call, count - 1);
  if (!shorter)
    return;
  for (int64_t i = 0; i < count - 1; ++i)
    shorter->items[i] = list->items[i + (i >= place)];
  frame[0] = handleOf(shorter);
}

void heddle_service_list_at(heddle_call_t *call, int64_t *frame) {
  const heddle_list_t *list = listOf(frame[2]);
  int64_t place;
  if (!findPosition(call, frame[1], frame[3], list ? list->count : 0, list ? list->count : 0,
                    &place))
    return;
  const heddle_item_t *item = list->items[place];
  if (item->rank != frame[4]) {
    call->fail(call, frame[1] + 1, item->rank, frame[4]);
    return;
  }
  frame[0] = handleOf(item->data);
  memcpy(frame + 5, item->dims, (size_t)item->rank * sizeof *item->dims);
}

void heddle_service_list_length(heddle_call_t *call, int64_t *frame) {
  (void)call;
  frame[0] = frame[1] ? listOf(frame[1])->count : -1;
}

void heddle_service_list_rank(heddle_call_t *call, int64_t *frame) {
  (void)call;
  frame[0] = listOf(frame[1])->items[0]->rank;
}

/* Bytes of one index of the dimensions before `axis`. */
static int64_t rowBytes(const heddle_item_t *item, int32_t axis) {
  return heddle_inner_bytes(item->dtype, item->rank - axis, item->dims + axis);
}

/* The joint dims; false, after the call has failed, where tensors do not fit. */
static bool jointDims(heddle_call_t *call, const heddle_list_t *list, int64_t message, int64_t axis,
                      bool isNew, int64_t rank, int64_t *dims) {
  if (!list || list->count == 0) {
    call->fail(call, message, 0, 0);
    return false;
  }
  const heddle_item_t *first = list->items[0];
  if (first->rank + isNew != rank) {
    call->fail(call, message + 1, first->rank, rank - isNew);
    return false;
  }
  for (int64_t d = 0, own = 0; d < rank; ++d)
    dims[d] = isNew && d == axis ? list->count : isNew ? first->dims[own++] : first->dims[d];
  for (int64_t i = 1; i < list->count; ++i) {
    const heddle_item_t *item = list->items[i];
    if (item->rank != first->rank) {
      call->fail(call, message + 1, item->rank, first->rank);
      return false;
    }
    for (int32_t d = 0; d < item->rank; ++d)
      if (item->dims[d] != first->dims[d] && (isNew || d != axis)) {
        call->fail(call, message + 2, item->dims[d], first->dims[d]);
        return false;
      }
    if (!isNew)
      dims[axis] += item->dims[axis];
  }
  return true;
}

void heddle_service_list_concat(heddle_call_t *call, int64_t *frame) {
  const heddle_list_t *list = listOf(frame[2]);
  int32_t axis = (int32_t)frame[3], rank = (int32_t)frame[5];
  int64_t *dims = frame + 6;
  if (!jointDims(call, list, frame[1], axis, frame[4] != 0, rank, dims)) {
    memset(dims, 0, (size_t)rank * sizeof *dims);
    return;
  }
  char *data = call->alloc(call, heddle_inner_bytes(list->items[0]->dtype, rank, dims));
  if (!data)
    return;
  int64_t rows = 1, offset = 0;
  for (int32_t d = 0; d < axis; ++d)
    rows *= dims[d];
  int64_t stride = heddle_inner_bytes(list->items[0]->dtype, rank - axis, dims + axis);
  for (int64_t i = 0; i < list->count; ++i) {
    int64_t bytes = rowBytes(list->items[i], axis);
    for (int64_t row = 0; row < rows && bytes > 0; ++row)
      memcpy(data + row * stride + offset, (const char *)list->items[i]->data + row * bytes,
             (size_t)bytes);
    offset += bytes;
  }
  frame[0] = handleOf(data);
}

/* `size` indices of `axis` from `start` on, as a tensor. */
static const heddle_item_t *cutItem(heddle_call_t *call, const heddle_item_t *x, int32_t axis,
                                    int64_t start, int64_t size, bool keepsAxis) {
  heddle_item_t piece = *x;
  piece.dims[axis] = size;
  int64_t rows = 1, stride = rowBytes(x, axis), bytes = rowBytes(&piece, axis);
  int64_t offset = heddle_inner_bytes(x->dtype, x->rank - axis - 1, x->dims + axis + 1) * start;
  for (int32_t d = 0; d < axis; ++d)
    rows *= x->dims[d];
  char *data = call->alloc(call, rows * bytes);
  if (!data)
    return NULL;
  for (int64_t row = 0; row < rows && bytes > 0; ++row)
    memcpy(data + row * bytes, (const char *)x->data + row * stride + offset, (size_t)bytes);
  if (!keepsAxis) {
    for (int32_t d = axis; d + 1 < piece.rank; ++d)
      piece.dims[d] = piece.dims[d + 1];
    --piece.rank;
  }
  return heddle_item_create(call, data, piece.dtype, piece.rank, piece.dims);
}

void heddle_service_list_split(heddle_call_t *call, int64_t *frame) {
  int32_t axis = (int32_t)frame[2], rank = (int32_t)frame[8];
  const int64_t *sizes = (const int64_t *)(uintptr_t)frame[4];
  bool isVector = sizes && frame[5] >= 0;
  heddle_item_t x = {(const void *)(uintptr_t)frame[7], (int32_t)frame[6], rank, {0}};
  memcpy(x.dims, frame + 9, (size_t)rank * sizeof *x.dims);
  int64_t whole = x.dims[axis], each = sizes && !isVector ? sizes[0] : 1, count = frame[5];
  if (isVector) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (sizes[i] < 0 || sizes[i] > whole - sum) {
        call->fail(call, frame[1], sizes[i], whole);
        return;
      }
      sum += sizes[i];
    }
    if (sum != whole) {
      call->fail(call, frame[1], sum, whole);
      return;
    }
  } else {
    if (each < 1) {
      call->fail(call, frame[1], each, whole);
      return;
    }
    count = whole / each + (whole % each != 0);
  }
  heddle_list_t *list = heddle_list_create(call, count);
  for (int64_t i = 0, start = 0; list && i < count; ++i) {
    int64_t size = isVector ? sizes[i] : each < whole - start ? each : whole - start;
    list->items[i] = cutItem(call, &x, axis, start, size, frame[3] != 0);
    if (!list->items[i])
      return;
    start += size;
  }
  frame[0] = handleOf(list);
}

void heddle_service_list_cast(heddle_call_t *call, int64_t *frame) {
  frame[0] = frame[2];
  if (!frame[2] && !frame[3])
    call->fail(call, frame[1], 0, 0);
}
