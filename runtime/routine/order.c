/* order.c: stable radix sort and selection of keys, and the different rows of a matrix. All take
 * time that grows with the number of elements alone, whatever they are. SPDX-License-Identifier:
 * Apache-2.0 */
#include "heddle/runtime.h"
#include "runtime/base/tensor.h"
#include "runtime/routine/key.h"

#include <string.h>

enum { FEW = 48, DIGITS = 256 };

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
    for (int64_t i = 0; i < count; ++i) {
      other[left] = from[i];
      left += ((from[i].key >> shift) & 255) == digit;
    }
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
