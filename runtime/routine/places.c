/* places.c: where a tensor of truth values holds, and running sums.
 * SPDX-License-Identifier: Apache-2.0 */
#include "heddle/runtime.h"
#include "runtime/base/tensor.h"
#include "runtime/routine/routine.h"

#include <string.h>

static int64_t countTrue(const uint8_t *flags, int64_t count) {
  int64_t found = 0;
  while (count > 0) {
    int64_t block = count < 255 ? count : 255;
    uint8_t here = 0; /* a sum of bytes, which the compiler makes of whole registers */
    for (int64_t i = 0; i < block; ++i)
      here = (uint8_t)(here + (flags[i] != 0));
    found += here;
    flags += block;
    count -= block;
  }
  return found;
}

void heddle_routine_nonzero(heddle_call_t *call, int64_t *frame) {
  ++frame;
  heddle_view_t result = heddle_view_next(&frame), x = heddle_view_next(&frame);
  const uint8_t *flags = x.data;
  int64_t total = heddle_view_count(&x, 0, x.rank), rank = x.rank;
  int64_t found = countTrue(flags, total), cells, *digits;
  result.dims[1] = found;
  if (__builtin_mul_overflow(found, rank, &cells))
    cells = -1;
  int64_t *to = heddle_routine_make(call, &result, cells, sizeof *to);
  if (!to || found == 0 || rank == 0)
    return;
  if (!(digits = heddle_routine_alloc(call, rank, sizeof *digits)))
    return;
  memset(digits, 0, (size_t)rank * sizeof *digits);
  int64_t last = x.dims[rank - 1], place = 0;
  for (int64_t row = 0; row < total; row += last) {
    int64_t begin = place, *columns = to + (rank - 1) * found;
    for (int64_t i = 0; i < last;) {
      uint64_t eight = 1;
      if (i + 8 <= last)
        memcpy(&eight, flags + row + i, sizeof eight);
      if (eight == 0) {
        i += 8;
        continue;
      }
      int64_t end = i + 8 < last ? i + 8 : last;
      for (; i < end; ++i)
        if (flags[row + i])
          columns[place++] = i;
    }
    for (int64_t axis = 0; axis < rank - 1; ++axis)
      for (int64_t i = begin; i < place; ++i)
        to[axis * found + i] = digits[axis];
    for (int64_t axis = rank - 2; axis >= 0 && ++digits[axis] == x.dims[axis]; --axis)
      digits[axis] = 0;
  }
}

typedef struct cumsum {
  heddle_view_t result, x;
  int64_t size, inner;
  bool exclusive, reverse;
} cumsum_t;

/* Sums along `size` rows of `inner` elements. Integers wrap. */
#define SUM(NAME, TYPE)                                                                            \
  static void NAME(const cumsum_t *op, const void *from, void *to) {                               \
    int64_t inner = op->inner, step = op->reverse ? -inner : inner;                                \
    int64_t start = op->reverse ? (op->size - 1) * inner : 0;                                      \
    const TYPE *x = (const TYPE *)from + start;                                                    \
    TYPE *y = (TYPE *)to + start;                                                                  \
    if (inner == 1) {                                                                              \
      TYPE sum = 0;                                                                                \
      for (int64_t i = 0; i < op->size; ++i, x += step, y += step) {                               \
        TYPE next = (TYPE)(sum + *x);                                                              \
        *y = op->exclusive ? sum : next;                                                           \
        sum = next;                                                                                \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t i = 0; i < op->size; ++i, x += step, y += step)                                   \
      for (int64_t k = 0; k < inner; ++k)                                                          \
        y[k] = i == 0 ? op->exclusive ? (TYPE)0 : x[k]                                             \
                      : (TYPE)(y[k - step] + x[op->exclusive ? k - step : k]);                     \
  }
SUM(sumF32, float)
SUM(sumF64, double)
SUM(sum8, uint8_t)
SUM(sum16, uint16_t)
SUM(sum32, uint32_t)
SUM(sum64, uint64_t)

static float floatOf(uint16_t bits, bool isBrain) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff, wide;
  float value;
  if (isBrain)
    wide = (uint32_t)bits << 16;
  else if (magnitude >= 0x7c00) /* infinity, NaN */
    wide = sign | 0x7f800000u | (magnitude & 0x3ff) << 13;
  else if (magnitude >= 0x400)
    wide = sign | ((magnitude << 13) + (112u << 23));
  else {
    value = (float)magnitude * 0x1p-24f;
    memcpy(&wide, &value, sizeof wide);
    wide |= sign;
  }
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Rounds to nearest even. */
static uint16_t halfOf(float value, bool isBrain) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & INT32_MAX;
  if (magnitude > 0x7f800000u)
    return (uint16_t)(sign | (isBrain ? 0x7fc0 : 0x7e00));
  if (isBrain)
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  if (magnitude >= 0x477ff000u)
    return (uint16_t)(sign | 0x7c00);
  if (magnitude >= 0x38800000u)
    return (uint16_t)(sign | (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13);
  float small = value < 0 ? -value : value; /* steps of 2^-24, by what an addition rounds off */
  small += 0.5f;
  memcpy(&bits, &small, sizeof bits);
  return (uint16_t)(sign | (bits - 0x3f000000u));
}

/* Sums of floats of 16 bits are rounded where they are stored alone. */
static void sumHalves(const cumsum_t *op, const void *from, void *to) {
  bool isBrain = op->x.dtype == HEDDLE_BFLOAT16;
  for (int64_t k = 0; k < op->inner; ++k) {
    float sum = 0;
    for (int64_t i = 0; i < op->size; ++i) {
      int64_t at = (op->reverse ? op->size - 1 - i : i) * op->inner + k;
      float next = sum + floatOf(((const uint16_t *)from)[at], isBrain);
      ((uint16_t *)to)[at] = halfOf(op->exclusive ? sum : next, isBrain);
      sum = next;
    }
  }
}

static void cumsumParts(const int64_t *args, int64_t begin, int64_t end, uint8_t *scratch) {
  const cumsum_t *op = (const cumsum_t *)(intptr_t)args[0];
  (void)scratch;
  int64_t bytes = heddle_tensor_bytes((int32_t)op->x.dtype, 0, NULL);
  for (int64_t part = begin; part < end; ++part) {
    int64_t at = part * op->size * op->inner * bytes;
    const char *from = (const char *)op->x.data + at;
    char *to = (char *)op->result.data + at;
    if (op->x.dtype == HEDDLE_FLOAT32)
      sumF32(op, from, to);
    else if (op->x.dtype == HEDDLE_FLOAT64)
      sumF64(op, from, to);
    else if (op->x.dtype == HEDDLE_FLOAT16 || op->x.dtype == HEDDLE_BFLOAT16)
      sumHalves(op, from, to);
    else
      (bytes == 1 ? sum8 : bytes == 2 ? sum16 : bytes == 4 ? sum32 : sum64)(op, from, to);
  }
}

void heddle_routine_cumsum(heddle_call_t *call, int64_t *frame) {
  cumsum_t op;
  ++frame;
  op.result = heddle_view_next(&frame);
  int64_t axis = *frame++;
  op.exclusive = *frame++;
  op.reverse = *frame++;
  op.x = heddle_view_next(&frame);
  op.size = op.x.dims[axis];
  op.inner = heddle_view_count(&op.x, axis + 1, op.x.rank);
  int64_t outer = heddle_view_count(&op.x, 0, axis), args[1] = {(int64_t)(intptr_t)&op};
  int64_t total = heddle_view_count(&op.x, 0, op.x.rank);
  if (total > 0)
    heddle_routine_launch(call, cumsumParts, args, outer, total, 0);
}
