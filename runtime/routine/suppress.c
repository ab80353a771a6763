/* suppress.c: non-maximum suppression. Boxes are taken by falling scores, in portions that are
 * selected before they are sorted: where few are wanted, few are sorted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/routine/key.h"

#include <string.h>

/* Corners with low <= high. */
typedef struct box {
  float low[2], high[2], area;
} box_t;

typedef struct suppress {
  const box_t *boxes;  /* [batch, n] */
  const float *scores; /* [batch, classes, n] */
  int64_t *taken;      /* [batch, classes, most] */
  int64_t *counts;     /* [batch, classes] */
  int64_t batch, classes, n, most;
  float overlap, least;
  bool hasLeast;
} suppress_t;

enum { LANES = 8, FIELDS = 5 };

/* Whether one of `count` boxes, which lie in blocks of LANES with a field after the other, shares
 * more than `overlap` of its union with this one. */
static bool isCovered(const float *chosen, int64_t count, const box_t *box, float overlap) {
  for (int64_t i = 0; i < count; i += LANES, chosen += LANES * FIELDS) {
    int32_t any = 0;
    for (int k = 0; k < LANES; ++k) {
      float low0 = chosen[k] > box->low[0] ? chosen[k] : box->low[0];
      float low1 = chosen[LANES + k] > box->low[1] ? chosen[LANES + k] : box->low[1];
      float high0 = chosen[2 * LANES + k] < box->high[0] ? chosen[2 * LANES + k] : box->high[0];
      float high1 = chosen[3 * LANES + k] < box->high[1] ? chosen[3 * LANES + k] : box->high[1];
      float shared = (high0 > low0 ? high0 - low0 : 0) * (high1 > low1 ? high1 - low1 : 0);
      float whole = chosen[4 * LANES + k] + box->area - shared;
      any |= (shared > 0) & (whole > 0) & (shared / whole > overlap);
    }
    if (any)
      return true;
  }
  return false;
}

static void keep(float *chosen, int64_t place, const box_t *box) {
  float *to = chosen + place / LANES * LANES * FIELDS + place % LANES;
  to[0] = box->low[0];
  to[LANES] = box->low[1];
  to[2 * LANES] = box->high[0];
  to[3 * LANES] = box->high[1];
  to[4 * LANES] = box->area;
}

static int64_t candidatesOf(const suppress_t *op, const float *scores, heddle_entry_t *entries) {
  const uint32_t *bits = (const uint32_t *)scores;
  int64_t count = 0;
  for (int64_t i = 0; i < op->n; ++i)
    if (!op->hasLeast || scores[i] > op->least)
      entries[count++] = (heddle_entry_t){UINT32_MAX - heddle_key_f32(bits[i]), i};
  return count;
}

/* Moves the `count` best to the front, sorted; all others follow in their order. */
static void bringForward(heddle_entry_t *entries, heddle_entry_t *other, int64_t held,
                         int64_t count) {
  if (count < held) {
    heddle_entry_t *best = other, *rest = other + held;
    memcpy(best, entries, (size_t)held * sizeof *entries);
    heddle_entries_select(best, rest, held, count);
    int64_t next = 0, left = 0;
    for (int64_t i = 0; i < held; ++i)
      if (next < count && best[next].index == entries[i].index)
        ++next;
      else
        rest[left++] = entries[i];
    memcpy(entries, best, (size_t)count * sizeof *entries);
    memcpy(entries + count, rest, (size_t)left * sizeof *entries);
  }
  heddle_entries_sort(entries, other, count);
}

static void suppressRows(const int64_t *args, int64_t begin, int64_t end, uint8_t *scratch) {
  const suppress_t *op = (const suppress_t *)(intptr_t)args[0];
  heddle_entry_t *entries = (heddle_entry_t *)scratch, *other = entries + op->n;
  float *chosen = (float *)(other + 2 * op->n);
  for (int64_t row = begin; row < end; ++row) {
    const box_t *boxes = op->boxes + row / op->classes * op->n;
    int64_t held = candidatesOf(op, op->scores + row * op->n, entries), count = 0;
    int64_t portion = 2 * op->most + 64, *taken = op->taken + row * op->most;
    for (heddle_entry_t *next = entries; held > 0 && count < op->most; portion *= 4) {
      int64_t now = portion < held ? portion : held;
      bringForward(next, other, held, now);
      for (int64_t i = 0; i < now && count < op->most; ++i) {
        const box_t *box = boxes + next[i].index;
        if (isCovered(chosen, count, box, op->overlap))
          continue;
        if (count % LANES == 0) /* lanes without a box share nothing */
          memset(chosen + count * FIELDS, 0, LANES * FIELDS * sizeof *chosen);
        keep(chosen, count, box);
        taken[count++] = next[i].index;
      }
      next += now;
      held -= now;
    }
    op->counts[row] = count;
  }
}

static box_t boxOf(const float *numbers, bool isCenter) {
  box_t box;
  for (int d = 0; d < 2; ++d) {
    float a = numbers[d], b = numbers[d + 2];
    if (isCenter) { /* x, y, width, height: the order of both axes matters to nothing */
      float half = b / 2;
      b = a + half;
      a = a - half;
    }
    box.low[d] = a < b ? a : b;
    box.high[d] = a < b ? b : a;
  }
  box.area = (box.high[0] - box.low[0]) * (box.high[1] - box.low[1]);
  return box;
}

void heddle_routine_suppress(heddle_call_t *call, int64_t *frame) {
  suppress_t op;
  ++frame;
  heddle_view_t result = heddle_view_next(&frame);
  op.hasLeast = *frame++;
  bool isCenter = *frame++;
  heddle_view_t boxes = heddle_view_next(&frame), scores = heddle_view_next(&frame);
  heddle_view_t most = heddle_view_next(&frame), overlap = heddle_view_next(&frame);
  heddle_view_t least = heddle_view_next(&frame);
  op.batch = scores.dims[0];
  op.classes = scores.dims[1];
  op.n = scores.dims[2];
  op.most = *(const int64_t *)most.data;
  op.most = op.most < 0 ? 0 : op.most > op.n ? op.n : op.most;
  op.overlap = *(const float *)overlap.data;
  op.least = *(const float *)least.data;
  op.scores = scores.data;
  int64_t rows, cells, all, bytes;
  if (__builtin_mul_overflow(op.batch, op.classes, &rows) ||
      __builtin_mul_overflow(rows, op.most, &cells))
    rows = cells = -1;
  all = heddle_view_count(&scores, 0, 3) ? heddle_view_count(&boxes, 0, 2) : 0;
  box_t *read = heddle_routine_alloc(call, all, sizeof *read);
  op.boxes = read;
  op.taken = heddle_routine_alloc(call, cells, sizeof *op.taken);
  op.counts = heddle_routine_alloc(call, rows, sizeof *op.counts);
  if (!read || !op.taken || !op.counts)
    return;
  for (int64_t i = 0; i < all; ++i)
    read[i] = boxOf((const float *)boxes.data + 4 * i, isCenter);
  memset(op.counts, 0, (size_t)rows * sizeof *op.counts);
  if (__builtin_mul_overflow(op.n, 3 * (int64_t)sizeof(heddle_entry_t), &bytes) ||
      __builtin_add_overflow(bytes, (op.most + LANES) * FIELDS * (int64_t)sizeof(float), &bytes))
    bytes = INT64_MAX;
  int64_t args[1] = {(int64_t)(intptr_t)&op};
  if (all > 0 && op.most > 0)
    call->launch(call, suppressRows, args, rows, bytes);
  int64_t found = 0;
  for (int64_t row = 0; row < rows; ++row)
    found += op.counts[row];
  result.dims[0] = found;
  if (__builtin_mul_overflow(found, 3, &cells))
    cells = -1;
  int64_t *to = heddle_routine_make(call, &result, cells, sizeof *to);
  if (!to)
    return;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < op.counts[row]; ++i) {
      *to++ = row / op.classes;
      *to++ = row % op.classes;
      *to++ = op.taken[row * op.most + i];
    }
}
