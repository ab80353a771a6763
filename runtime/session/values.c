/* values.c: packing, interning and boxing at the border of a run. SPDX-License-Identifier:
 * Apache-2.0 */
#include "runtime/session/values.h"

#include "runtime/base/results.h"
#include "runtime/base/tensor.h"
#include "runtime/session/lists.h"

#include <string.h>

static bool isPlain(int32_t dtype) {
  return dtype != HEDDLE_STRING && heddle_dtype_bits(dtype) >= 8;
}

bool heddle_is_plain(const heddle_io_t *io) {
  return io->kind == HEDDLE_IO_TENSOR && isPlain(io->dtype);
}

int64_t heddle_inner_bytes(int32_t dtype, int32_t rank, const int64_t *dims) {
  if (!isPlain(dtype))
    dtype = dtype == HEDDLE_STRING ? HEDDLE_INT64 : HEDDLE_UINT8;
  return heddle_tensor_bytes(dtype, rank, dims);
}

int64_t heddle_io_bytes(const heddle_io_t *io, const int64_t *dims) {
  return io->kind == HEDDLE_IO_TENSOR ? heddle_inner_bytes(io->dtype, io->rank, dims)
                                      : (int64_t)sizeof(heddle_list_t *);
}

static int64_t countOf(int32_t rank, const int64_t *dims) {
  return heddle_tensor_bytes(HEDDLE_UINT8, rank, dims);
}

static const void *takeTensor(heddle_call_t *call, heddle_strings_t *strings,
                              const heddle_tensor_t *tensor) {
  if (isPlain(tensor->dtype))
    return tensor->data;
  int64_t count = countOf(tensor->rank, tensor->dims);
  void *inner = call->alloc(call, heddle_inner_bytes(tensor->dtype, tensor->rank, tensor->dims));
  if (!inner)
    return NULL;
  if (tensor->dtype == HEDDLE_STRING) {
    const heddle_string_t *texts = tensor->data;
    int64_t *numbers = inner;
    for (int64_t i = 0; i < count; ++i) {
      numbers[i] =
          heddle_strings_number(strings, texts[i].size ? texts[i].data : "", texts[i].size);
      if (numbers[i] < 0) {
        call->alloc(call, INT64_MAX); /* says that memory is out */
        return NULL;
      }
    }
    return inner;
  }
  int bits = heddle_dtype_bits(tensor->dtype), each = 8 / bits;
  const uint8_t *packed = tensor->data;
  uint8_t *bytes = inner;
  for (int64_t i = 0; i < count; ++i)
    bytes[i] = (uint8_t)((packed[i / each] >> (i % each * bits)) & ((1 << bits) - 1));
  return inner;
}

/* A list of `count` tensors; NULL, after the call has failed, when out of memory. */
static heddle_list_t *takeList(heddle_call_t *call, heddle_strings_t *strings,
                               const heddle_tensor_t *tensors, int64_t count) {
  heddle_list_t *list = heddle_list_create(call, count);
  for (int64_t i = 0; list && i < list->count; ++i) {
    const heddle_tensor_t *each = &tensors[i];
    const void *data = takeTensor(call, strings, each);
    bool isLost = !data && countOf(each->rank, each->dims) > 0;
    list->items[i] =
        isLost ? NULL : heddle_item_create(call, data, each->dtype, each->rank, each->dims);
    if (!list->items[i])
      return NULL;
  }
  return list;
}

const void *heddle_value_take(heddle_call_t *call, heddle_strings_t *strings, const heddle_io_t *io,
                              const heddle_tensor_t *tensor) {
  if (io->kind == HEDDLE_IO_TENSOR)
    return takeTensor(call, strings, tensor);
  heddle_list_t **handle = call->alloc(call, sizeof *handle);
  if (!handle)
    return NULL;
  *handle = NULL;
  if (io->kind == HEDDLE_IO_ANY_RANK)
    *handle = takeList(call, strings, tensor, 1);
  else if (tensor->dims[0] < 0)
    return handle;
  else
    *handle = takeList(call, strings, tensor->data, tensor->dims[0]);
  return *handle ? handle : NULL;
}

static void pack(uint8_t *bytes, int64_t count, int bits) {
  int each = 8 / bits;
  for (int64_t i = 0; i < count; i += each) {
    unsigned byte = 0;
    for (int j = 0; j < each && i + j < count; ++j)
      byte |= (bytes[i + j] & ((1u << bits) - 1)) << (j * bits);
    bytes[i / each] = (uint8_t)byte;
  }
}

static int64_t aligned(int64_t bytes) { return (bytes + 63) & ~INT64_C(63); }

/* Bytes that a tensor takes outside, with those of its strings. */
static int64_t outerBytes(const heddle_strings_t *strings, const heddle_item_t *item) {
  int64_t bytes = heddle_tensor_bytes(item->dtype, item->rank, item->dims);
  if (item->dtype == HEDDLE_STRING && bytes > 0)
    for (int64_t i = 0, count = countOf(item->rank, item->dims); i < count; ++i)
      bytes += (int64_t)heddle_strings_text(strings, ((const int64_t *)item->data)[i]).size;
  return bytes;
}

/* Writes a tensor at `block`, which has room for it. */
static void giveTensor(const heddle_strings_t *strings, const heddle_item_t *item, char *block,
                       heddle_tensor_t *result) {
  int64_t count = countOf(item->rank, item->dims);
  result->dtype = item->dtype;
  result->rank = item->rank;
  memcpy(result->dims, item->dims, (size_t)item->rank * sizeof *item->dims);
  result->data = block;
  result->bytes = heddle_tensor_bytes(item->dtype, item->rank, item->dims);
  if (count <= 0)
    return;
  if (item->dtype == HEDDLE_STRING) {
    heddle_string_t *texts = (heddle_string_t *)block;
    char *next = block + result->bytes;
    for (int64_t i = 0; i < count; ++i) {
      heddle_string_t text = heddle_strings_text(strings, ((const int64_t *)item->data)[i]);
      if (text.size)
        memcpy(next, text.data, text.size);
      texts[i] = (heddle_string_t){next, text.size};
      next += text.size;
    }
  } else if (isPlain(item->dtype)) {
    memcpy(block, item->data, (size_t)result->bytes);
  } else {
    int bits = heddle_dtype_bits(item->dtype), each = 8 / bits;
    const uint8_t *bytes = item->data;
    memset(block, 0, (size_t)result->bytes);
    for (int64_t i = 0; i < count; ++i)
      ((uint8_t *)block)[i / each] |=
          (uint8_t)((bytes[i] & ((1u << bits) - 1)) << (i % each * bits));
  }
}

static bool giveList(const heddle_strings_t *strings, const heddle_list_t *list,
                     heddle_tensor_t *result) {
  result->dtype = HEDDLE_SEQUENCE;
  result->rank = 1;
  result->dims[0] = list ? list->count : -1;
  if (!list)
    return true;
  int64_t head = list->count * (int64_t)sizeof(heddle_tensor_t), bytes = aligned(head);
  for (int64_t i = 0; i < list->count; ++i)
    bytes += aligned(outerBytes(strings, list->items[i]));
  char *block = heddle_result_allocate(NULL, bytes);
  if (!block)
    return false;
  heddle_tensor_t *tensors = (heddle_tensor_t *)block;
  memset(tensors, 0, (size_t)head);
  char *next = block + aligned(head);
  for (int64_t i = 0; i < list->count; ++i) {
    giveTensor(strings, list->items[i], next, &tensors[i]);
    next += aligned(outerBytes(strings, list->items[i]));
  }
  result->data = result->owner = block;
  result->bytes = head;
  return true;
}

/* A copy of a tensor in a block of its own. */
static bool giveCopy(const heddle_strings_t *strings, const heddle_item_t *item,
                     heddle_tensor_t *result) {
  char *block = heddle_result_allocate(NULL, outerBytes(strings, item));
  if (!block)
    return false;
  giveTensor(strings, item, block, result);
  result->owner = block;
  return true;
}

bool heddle_value_give(const heddle_strings_t *strings, const heddle_io_t *io, void *inner,
                       const int64_t *dims, heddle_tensor_t *result) {
  *result = (heddle_tensor_t){0};
  if (io->kind == HEDDLE_IO_ANY_RANK)
    return giveCopy(strings, (*(heddle_list_t *const *)inner)->items[0], result);
  if (io->kind != HEDDLE_IO_TENSOR)
    return giveList(strings, *(heddle_list_t *const *)inner, result);
  heddle_item_t item = {inner, io->dtype, io->rank, {0}};
  memcpy(item.dims, dims, (size_t)io->rank * sizeof *dims);
  if (io->dtype != HEDDLE_STRING) {
    pack(inner, countOf(io->rank, dims), heddle_dtype_bits(io->dtype));
    result->data = inner;
    result->bytes = heddle_tensor_bytes(io->dtype, io->rank, dims);
    return true;
  }
  return giveCopy(strings, &item, result);
}
