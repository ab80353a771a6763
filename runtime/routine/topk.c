/* topk.c: the largest (smallest) elements of rows. Few are kept sorted, many are selected from what
 * is better than an estimate. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/tensor.h"
#include "runtime/routine/key.h"

#include <string.h>

enum { MOST_INSERTED = 32, BLOCK = 32, SAMPLE = 256 };

typedef struct topk {
  heddle_view_t values, places, x;
  int64_t size, count, inner, capacity, bytes;
  bool largest;
} topk_t;

/* The keys of elements i, i + step ...; the best are the smallest. */
static void keysOf(const topk_t *op, const char *row, int64_t i, int64_t step, int64_t count,
                   uint64_t *keys) {
  uint64_t flip = op->largest ? UINT64_MAX : 0;
  const char *first = row + i * op->inner * op->bytes;
  int64_t stride = step * op->inner;
#define OF_TYPE(DTYPE)                                                                             \
  case DTYPE:                                                                                      \
    for (int64_t k = 0; k < count; ++k)                                                            \
      keys[k] = heddle_key(first, DTYPE, k * stride) ^ flip;                                       \
    break;
  if (op->x.dtype == HEDDLE_FLOAT32 && stride == 1) { /* in lanes */
    for (int64_t k = 0; k < count; ++k)
      keys[k] = heddle_key_f32(((const uint32_t *)first)[k]) ^ flip;
    return;
  }
  switch (op->x.dtype) {
    OF_TYPE(HEDDLE_FLOAT32)
    OF_TYPE(HEDDLE_FLOAT64)
    OF_TYPE(HEDDLE_INT32)
    OF_TYPE(HEDDLE_INT64)
  default:
    for (int64_t k = 0; k < count; ++k)
      keys[k] = heddle_key(first, op->x.dtype, k * stride) ^ flip;
  }
#undef OF_TYPE
}

/* Where, from `i` on, the next block of f32 begins that may hold a key up to `last`. */
static int64_t skipF32(const topk_t *op, const char *row, int64_t i, uint64_t last) {
  const int32_t *bits = (const int32_t *)row;
  uint64_t key = op->largest ? ~last : last;
  if (key >= UINT32_MAX)
    return i;
  /* As signed numbers the bits order as their floats do, once those of negative ones are turned. */
  int32_t worst = (int32_t)((uint32_t)key ^ 0x80000000u), lowest = INT32_MIN + 0x7fffff;
  for (; i + BLOCK <= op->size; i += BLOCK) {
    int32_t any = 0;
    for (int64_t k = 0; k < BLOCK; ++k) {
      int32_t turned = bits[i + k] ^ ((bits[i + k] >> 31) & INT32_MAX);
      any |= op->largest ? (turned >= worst) | (turned < lowest) : turned <= worst;
    }
    if (any)
      return i;
  }
  return i;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Appends those of the next `room` or fewer elements whose keys are at most `last` to `entries`,
 * where there is room for one more, and moves *i after them. How many. */
static int64_t append(const topk_t *op, const char *row, int64_t *i, int64_t room, uint64_t last,
                      heddle_entry_t *entries) {
  uint64_t keys[BLOCK];
  if (last != UINT64_MAX && op->x.dtype == HEDDLE_FLOAT32 && op->inner == 1)
    *i = skipF32(op, row, *i, last);
  int64_t begin = *i, count = least(op->size - begin, least(BLOCK, room)), held = 0;
  keysOf(op, row, begin, 1, count, keys);
  for (int64_t k = 0; k < count; ++k) { /* no branch that nobody can foresee */
    entries[held].key = keys[k];
    entries[held].index = begin + k;
    held += keys[k] <= last;
  }
  *i = begin + count;
  return held;
}

/* A few are kept sorted: the next one moves those that are worse. */
static void insertRow(const topk_t *op, const char *row, heddle_entry_t *entries) {
  heddle_entry_t found[BLOCK + 1];
  int64_t held = 0;
  for (int64_t i = 0; i < op->size;) {
    uint64_t last = held == op->count ? entries[held - 1].key : UINT64_MAX;
    int64_t count = append(op, row, &i, BLOCK, last, found);
    for (int64_t k = 0; k < count; ++k) {
      heddle_entry_t next = found[k];
      if (held == op->count && next.key >= entries[held - 1].key)
        continue;
      int64_t at = held < op->count ? held++ : held - 1;
      for (; at > 0 && entries[at - 1].key > next.key; --at)
        entries[at] = entries[at - 1];
      entries[at] = next;
    }
  }
}

static uint64_t worstOf(const heddle_entry_t *entries, int64_t count) {
  uint64_t worst = 0;
  for (int64_t k = 0; k < count; ++k)
    worst = entries[k].key > worst ? entries[k].key : worst;
  return worst;
}

/* A key that somewhat more than `count` of the row's are at most, from a sample of them (Floyd and
 * Rivest, Expected time bounds for selection, 1975); the greatest of all: no estimate. */
static uint64_t estimateLast(const topk_t *op, const char *row, heddle_entry_t *entries,
                             heddle_entry_t *other) {
  if (op->size < 4 * SAMPLE || op->capacity < SAMPLE)
    return UINT64_MAX;
  uint64_t keys[SAMPLE];
  keysOf(op, row, 0, op->size / SAMPLE, SAMPLE, keys);
  for (int64_t k = 0; k < SAMPLE; ++k)
    entries[k] = (heddle_entry_t){keys[k], k};
  int64_t wanted = op->count * SAMPLE / op->size + 1, deviation = 1;
  while (deviation * deviation < wanted)
    ++deviation;
  int64_t rank = wanted + 3 * deviation;
  if (rank >= SAMPLE)
    return UINT64_MAX;
  heddle_entries_select(entries, other, SAMPLE, rank);
  return worstOf(entries, rank);
}

/* Sorts the best `count` of the keys up to `last`: where there is no room for more, those that are
 * worse are dropped, which costs a few steps for each that has come in since. False where there are
 * fewer. */
static bool selectUpTo(const topk_t *op, const char *row, uint64_t last, heddle_entry_t *entries,
                       heddle_entry_t *other) {
  int64_t held = 0;
  for (int64_t i = 0; i < op->size;) {
    held += append(op, row, &i, op->capacity - held, last, entries + held);
    if (held == op->capacity && i < op->size) {
      heddle_entries_select(entries, other, held, op->count);
      held = op->count;
      last = worstOf(entries, held);
    }
  }
  if (held > 2 * op->count) {
    heddle_entries_select(entries, other, held, op->count);
    held = op->count;
  }
  heddle_entries_sort(entries, other, held);
  return held >= op->count;
}

static void selectRow(const topk_t *op, const char *row, heddle_entry_t *entries,
                      heddle_entry_t *other) {
  uint64_t last = estimateLast(op, row, entries, other);
  if (!selectUpTo(op, row, last, entries, other))
    selectUpTo(op, row, UINT64_MAX, entries, other);
}

static void topkRow(const topk_t *op, const char *row, heddle_entry_t *entries,
                    heddle_entry_t *other, char *values, int64_t *places) {
  if (op->count <= MOST_INSERTED)
    insertRow(op, row, entries);
  else
    selectRow(op, row, entries, other);
  for (int64_t k = 0; k < op->count; ++k) {
    places[k * op->inner] = entries[k].index;
    memcpy(values + k * op->inner * op->bytes, row + entries[k].index * op->inner * op->bytes,
           (size_t)op->bytes);
  }
}

static void topkRows(const int64_t *args, int64_t begin, int64_t end, uint8_t *scratch) {
  const topk_t *op = (const topk_t *)(intptr_t)args[0];
  heddle_entry_t *entries = (heddle_entry_t *)scratch, *other = entries + op->capacity + 1;
  for (int64_t row = begin; row < end; ++row) {
    int64_t outer = row / op->inner, inner = row % op->inner;
    int64_t to = outer * op->count * op->inner + inner;
    topkRow(op, (const char *)op->x.data + (outer * op->size * op->inner + inner) * op->bytes,
            entries, other, (char *)op->values.data + to * op->bytes,
            (int64_t *)op->places.data + to);
  }
}

void heddle_routine_topk(heddle_call_t *call, int64_t *frame) {
  topk_t op;
  int64_t message = *frame++;
  op.values = heddle_view_next(&frame);
  op.places = heddle_view_next(&frame);
  int64_t axis = *frame++;
  op.largest = *frame++;
  op.x = heddle_view_next(&frame);
  op.size = op.x.dims[axis];
  op.count = op.values.dims[axis];
  op.inner = heddle_view_count(&op.x, axis + 1, op.x.rank);
  op.bytes = heddle_tensor_bytes((int32_t)op.x.dtype, 0, NULL);
  int64_t outer = heddle_view_count(&op.x, 0, axis);
  if (op.count > op.size) {
    call->fail(call, message, op.count, op.size);
    return;
  }
  if (op.count <= 0 || op.inner <= 0 || outer <= 0)
    return;
  /* Room for as many again before the worst are dropped; no more than there are. */
  op.capacity = op.count > op.size / 4 ? op.size : 2 * op.count + 192;
  if (op.capacity > op.size)
    op.capacity = op.size;
  int64_t scratch, args[1] = {(int64_t)(intptr_t)&op};
  if (__builtin_mul_overflow(op.capacity + 1, 2 * (int64_t)sizeof(heddle_entry_t), &scratch))
    scratch = INT64_MAX;
  call->launch(call, topkRows, args, outer * op.inner, scratch);
}
