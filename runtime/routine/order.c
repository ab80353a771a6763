/* order.c: keys, stable radix sort and selection, and what is made of them: the largest elements of
 * each row, and the different rows of a matrix. All take time that grows with the number of
 * elements alone, whatever they are. SPDX-License-Identifier: Apache-2.0 */
#include "heddle/runtime.h"
#include "runtime/base/tensor.h"
#include "runtime/routine/routine.h"

#include <string.h>

enum { FEW = 48, DIGITS = 256, MOST_INSERTED = 32 };

static uint64_t keyOfFloat(uint64_t bits, int width, uint64_t infinity) {
  uint64_t sign = UINT64_C(1) << (width - 1), mask = sign | (sign - 1);
  uint64_t magnitude = bits & (sign - 1);
  if (magnitude > infinity)
    return mask;
  return magnitude == 0 ? sign : bits & sign ? ~bits & mask : bits | sign;
}

#define READ(TYPE) (((const TYPE *)data)[index])
#define OF_SIGNED(TYPE) ((uint64_t)(int64_t)READ(TYPE) ^ (UINT64_C(1) << 63))

uint64_t heddle_key(const void *data, int64_t dtype, int64_t index) {
  switch (dtype) {
  case HEDDLE_FLOAT32:
    return heddle_key_f32(READ(uint32_t));
  case HEDDLE_FLOAT64:
    return keyOfFloat(READ(uint64_t), 64, UINT64_C(0x7ff) << 52);
  case HEDDLE_FLOAT16:
    return keyOfFloat(READ(uint16_t), 16, 0x7c00);
  case HEDDLE_BFLOAT16:
    return keyOfFloat(READ(uint16_t), 16, 0x7f80);
  case HEDDLE_INT8:
    return OF_SIGNED(int8_t);
  case HEDDLE_INT16:
    return OF_SIGNED(int16_t);
  case HEDDLE_INT32:
    return OF_SIGNED(int32_t);
  case HEDDLE_UINT16:
    return READ(uint16_t);
  case HEDDLE_UINT32:
    return READ(uint32_t);
  case HEDDLE_UINT64:
    return READ(uint64_t);
  case HEDDLE_UINT8:
  case HEDDLE_BOOL:
    return READ(uint8_t);
  default: /* int64, and the numbers of strings */
    return OF_SIGNED(int64_t);
  }
}

bool heddle_key_is_nan(int64_t dtype, uint64_t key) {
  switch (dtype) {
  case HEDDLE_FLOAT32:
    return key == UINT32_MAX;
  case HEDDLE_FLOAT64:
    return key == UINT64_MAX;
  case HEDDLE_FLOAT16:
  case HEDDLE_BFLOAT16:
    return key == UINT16_MAX;
  default:
    return false;
  }
}

/* The bits in which keys differ. */
static uint64_t differences(const heddle_entry_t *entries, int64_t count) {
  uint64_t all = 0, first = count ? entries[0].key : 0;
  for (int64_t i = 0; i < count; ++i)
    all |= entries[i].key ^ first;
  return all;
}

static void insertionSort(heddle_entry_t *entries, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    heddle_entry_t moved = entries[i];
    int64_t at = i;
    for (; at > 0 && entries[at - 1].key > moved.key; --at)
      entries[at] = entries[at - 1];
    entries[at] = moved;
  }
}

void heddle_entries_sort(heddle_entry_t *entries, heddle_entry_t *other, int64_t count) {
  if (count <= FEW) {
    insertionSort(entries, count);
    return;
  }
  uint64_t differing = differences(entries, count);
  heddle_entry_t *from = entries, *to = other;
  for (int shift = 0; shift < 64; shift += 8) {
    if (((differing >> shift) & 255) == 0)
      continue;
    int64_t places[DIGITS] = {0}, before = 0;
    for (int64_t i = 0; i < count; ++i)
      ++places[(from[i].key >> shift) & 255];
    for (int digit = 0; digit < DIGITS; ++digit) {
      int64_t here = places[digit];
      places[digit] = before;
      before += here;
    }
    for (int64_t i = 0; i < count; ++i)
      to[places[(from[i].key >> shift) & 255]++] = from[i];
    heddle_entry_t *swapped = from;
    from = to;
    to = swapped;
  }
  if (from != entries)
    memcpy(entries, from, (size_t)count * sizeof *entries);
}

/* The key that has place `rank` among those of entries; *before: how many are smaller. */
static uint64_t keyAt(const heddle_entry_t *entries, heddle_entry_t *other, int64_t count,
                      int64_t rank, int64_t *before) {
  uint64_t differing = differences(entries, count);
  *before = 0;
  const heddle_entry_t *from = entries;
  for (int shift = 56; shift >= 0 && count > 1; shift -= 8) {
    if (((differing >> shift) & 255) == 0)
      continue;
    int64_t counts[DIGITS] = {0}, smaller = 0;
    for (int64_t i = 0; i < count; ++i)
      ++counts[(from[i].key >> shift) & 255];
    uint64_t digit = 0;
    while (smaller + counts[digit] <= rank)
      smaller += counts[digit++];
    int64_t left = 0;
    for (int64_t i = 0; i < count; ++i)
      if (((from[i].key >> shift) & 255) == digit)
        other[left++] = from[i];
    from = other;
    count = left;
    rank -= smaller;
    *before += smaller;
  }
  return from[0].key;
}

void heddle_entries_select(heddle_entry_t *entries, heddle_entry_t *other, int64_t count,
                           int64_t kept) {
  if (kept >= count)
    return;
  int64_t smaller, place = 0;
  uint64_t last = keyAt(entries, other, count, kept - 1, &smaller);
  int64_t equal = kept - smaller;
  for (int64_t i = 0; i < count; ++i) {
    bool isEqual = entries[i].key == last, isKept = entries[i].key < last || (isEqual && equal > 0);
    equal -= isEqual;
    entries[place] = entries[i];
    place += isKept;
    if (place == kept)
      break;
  }
}

/* --- the largest (smallest) elements of rows ------------------------------------------------- */

typedef struct topk {
  heddle_view_t values, places, x;
  int64_t size, count, inner, capacity, bytes;
  bool largest;
} topk_t;

static uint64_t keyOf(const topk_t *op, const char *row, int64_t i) {
  uint64_t flip = op->largest ? UINT64_MAX : 0;
  if (op->x.dtype == HEDDLE_FLOAT32) /* without a switch an element */
    return heddle_key_f32(((const uint32_t *)row)[i * op->inner]) ^ flip;
  return heddle_key(row, op->x.dtype, i * op->inner) ^ flip;
}

/* Where, from `i` on, the next block of f32 begins that may hold a key below the limit. */
static int64_t skipF32(const topk_t *op, const char *row, int64_t i, uint64_t limit) {
  enum { BLOCK = 32 };
  const int32_t *bits = (const int32_t *)row;
  uint64_t key = op->largest ? ~limit : limit; /* of the element that is the worst of those kept */
  if (key == UINT32_MAX)
    return i;
  /* As signed numbers the bits order as their floats do, once those of negative ones are turned. */
  int32_t worst = (int32_t)((uint32_t)key ^ 0x80000000u), lowest = INT32_MIN + 0x7fffff;
  for (; i + BLOCK <= op->size; i += BLOCK) {
    int32_t any = 0;
    for (int64_t k = 0; k < BLOCK; ++k) {
      int32_t turned = bits[i + k] ^ ((bits[i + k] >> 31) & INT32_MAX);
      any |= op->largest ? (turned > worst) | (turned < lowest) : turned < worst;
    }
    if (any)
      return i;
  }
  return i;
}

/* A few are kept sorted: the next one moves those that are worse. */
static void insertRow(const topk_t *op, const char *row, heddle_entry_t *entries) {
  bool skips = op->x.dtype == HEDDLE_FLOAT32 && op->inner == 1;
  int64_t held = 0;
  for (int64_t i = 0; i < op->size;) {
    if (skips && held == op->count)
      i = skipF32(op, row, i, entries[held - 1].key);
    int64_t end = op->size - i < 32 ? op->size : i + 32;
    for (; i < end; ++i) {
      uint64_t key = keyOf(op, row, i);
      if (held == op->count && key >= entries[held - 1].key)
        continue;
      int64_t at = held < op->count ? held++ : held - 1;
      for (; at > 0 && entries[at - 1].key > key; --at)
        entries[at] = entries[at - 1];
      entries[at] = (heddle_entry_t){key, i};
    }
  }
}

/* Keeps the best `count` of what was met so far: where there is no room for more, the others are
 * dropped, which costs a few steps for each that has come in since. */
static void selectRow(const topk_t *op, const char *row, heddle_entry_t *entries,
                      heddle_entry_t *other) {
  int64_t held = 0;
  uint64_t limit = UINT64_MAX;
  bool isFull = false; /* whether `limit` is that of the worst of `count` that are kept */
  bool skips = op->x.dtype == HEDDLE_FLOAT32 && op->inner == 1;
  for (int64_t i = 0; i < op->size;) {
    if (isFull && skips)
      i = skipF32(op, row, i, limit);
    int64_t room = op->capacity - held, end = op->size - i < room ? op->size : i + room;
    if (isFull && skips && end > i + 32)
      end = i + 32;
    for (; i < end; ++i) {
      entries[held] = (heddle_entry_t){keyOf(op, row, i), i};
      held += !isFull || entries[held].key < limit;
    }
    if (held == op->capacity && i < op->size) {
      heddle_entries_select(entries, other, held, op->count);
      held = op->count;
      isFull = true;
      limit = 0;
      for (int64_t k = 0; k < held; ++k)
        limit = entries[k].key > limit ? entries[k].key : limit;
    }
  }
  heddle_entries_select(entries, other, held, op->count);
  heddle_entries_sort(entries, other, op->count);
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

/* --- the different rows of a matrix ---------------------------------------------------------- */

void heddle_routine_unique(heddle_call_t *call, int64_t *frame) {
  ++frame;
  heddle_view_t first = heddle_view_next(&frame), inverse = heddle_view_next(&frame),
                counts = heddle_view_next(&frame);
  bool isSorted = *frame++;
  heddle_view_t x = heddle_view_next(&frame);
  int64_t rows = x.dims[0], width = x.dims[1], found = 0, *groups = inverse.data;
  heddle_entry_t *entries = heddle_routine_alloc(call, rows, sizeof *entries);
  heddle_entry_t *other = heddle_routine_alloc(call, rows, sizeof *other);
  if (!entries || !other)
    return;
  for (int64_t i = 0; i < rows; ++i)
    entries[i].index = i;
  for (int64_t column = width - 1; column >= 0; --column) {
    for (int64_t i = 0; i < rows; ++i)
      entries[i].key = heddle_key(x.data, x.dtype, entries[i].index * width + column);
    heddle_entries_sort(entries, other, rows);
  }
  /* The first of each group, in sorted order, in `other`. */
  for (int64_t i = 0; i < rows; ++i) {
    bool isNew = i == 0;
    for (int64_t column = 0; column < width && !isNew; ++column) {
      uint64_t key = heddle_key(x.data, x.dtype, entries[i].index * width + column);
      isNew = heddle_key_is_nan(x.dtype, key) ||
              key != heddle_key(x.data, x.dtype, entries[i - 1].index * width + column);
    }
    if (isNew)
      other[found++] = (heddle_entry_t){0, entries[i].index};
    ++other[found - 1].key; /* how many there are */
    groups[entries[i].index] = found - 1;
  }
  first.dims[0] = counts.dims[0] = found;
  int64_t *firsts = heddle_routine_make(call, &first, found, sizeof *firsts);
  int64_t *sizes = heddle_routine_make(call, &counts, found, sizeof *sizes);
  if (!firsts || !sizes)
    return;
  if (!isSorted) { /* groups by their first places: `entries` has the new number of each */
    int64_t next = 0;
    for (int64_t i = 0; i < rows; ++i)
      if (other[groups[i]].index == i)
        entries[groups[i]].index = next++;
    for (int64_t i = 0; i < rows; ++i)
      groups[i] = entries[groups[i]].index;
  }
  for (int64_t i = 0; i < found; ++i) {
    int64_t to = isSorted ? i : entries[i].index;
    firsts[to] = other[i].index;
    sizes[to] = (int64_t)other[i].key;
  }
}
