/* scan.c: each condition of a tree closes leaves of 16 rows side by side; the first that is open
 * in the end is a row's. One source for the widths of registers that a CPU may have.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/routine/scan.h"
#include "runtime/executable/features.h"
#include "runtime/routine/key.h"

#include <stdatomic.h>
#include <string.h>

enum { LANES = 16, MOST_GROUPS = 4 };
typedef int32_t lanes_t __attribute__((vector_size(LANES * 4)));

heddle_scan_t heddle_scan_next(const int32_t **words) {
  heddle_scan_t scan = {**words, *words + 1, *words + 1 + 4 * (int64_t)**words};
  *words = scan.count == 0 ? *words + 1 : scan.leaves + scan.count + 1;
  return scan;
}

#define INLINE static inline __attribute__((always_inline))

INLINE void keysOfRows(const uint32_t *x, int64_t rows, int64_t features, bool mirrored,
                       int32_t *to) {
  int64_t width = mirrored ? 2 * features : features;
  for (int64_t group = 0; group < rows; group += LANES)
    for (int64_t lane = 0; lane < LANES; ++lane) {
      int32_t *keys = to + group * width + lane;
      const uint32_t *row = x + (group + lane < rows ? group + lane : rows - 1) * features;
      for (int64_t i = 0; i < features; ++i) {
        uint32_t key = (uint32_t)heddle_key_f32(row[i]);
        keys[i * LANES] = (int32_t)(key ^ UINT32_C(1) << 31);
        if (mirrored)
          keys[(features + i) * LANES] = key == UINT32_MAX ? INT32_MIN : keys[i * LANES];
      }
    }
}

/* The leaves of `groups` times 16 rows, the keys of a group `stride` after those before it. Leaves
 * of 33 and more are those of a second word. */
INLINE void scanGroups(const heddle_scan_t *scan, const int32_t *keys, int64_t stride,
                       const int groups, const bool isLong, uint32_t *leaves) {
  lanes_t none = {0}, low[MOST_GROUPS], high[MOST_GROUPS], key;
  for (int g = 0; g < groups; ++g)
    low[g] = high[g] = ~none;
  for (const int32_t *condition = scan->conditions; condition < scan->leaves; condition += 4) {
    const int32_t *own = keys + (int64_t)condition[0] * LANES;
    for (int g = 0; g < groups; ++g) {
      memcpy(&key, own + g * stride, sizeof key);
      lanes_t isAbove = key > condition[1];
      low[g] &= condition[2] | ~isAbove;
      if (isLong)
        high[g] &= condition[3] | ~isAbove;
    }
  }
  for (int g = 0; g < groups; ++g) {
    uint32_t lows[LANES], highs[LANES];
    memcpy(lows, &low[g], sizeof lows);
    memcpy(highs, &high[g], sizeof highs);
    for (int lane = 0; lane < LANES; ++lane) {
      bool isHigh = isLong && lows[lane] == 0;
      uint32_t word = (isHigh ? highs[lane] : lows[lane]) | UINT32_C(1) << 31;
      leaves[g * LANES + lane] = (uint32_t)__builtin_ctz(word) + (isHigh ? 32 : 0);
    }
  }
}

/* From `row` on, as many rows as come in so many groups; where they end. */
INLINE int64_t scanFrom(int64_t row, const heddle_scan_t *scan, const int32_t *keys, int64_t width,
                        int64_t rows, const int groups, uint32_t *leaves) {
  bool isLong = scan->count >= 32;
  for (; row + (groups - 1) * LANES < rows; row += groups * LANES)
    if (isLong)
      scanGroups(scan, keys + row * width, width * LANES, groups, true, leaves + row);
    else
      scanGroups(scan, keys + row * width, width * LANES, groups, false, leaves + row);
  return row;
}

/* `most`: groups at a time, as many as the registers hold. */
INLINE void scanRows(const heddle_scan_t *scan, const int32_t *keys, int64_t width, int64_t rows,
                     const int most, uint32_t *leaves) {
  int64_t row = 0;
  if (most >= 4)
    row = scanFrom(row, scan, keys, width, rows, 4, leaves);
  if (most >= 2)
    row = scanFrom(row, scan, keys, width, rows, 2, leaves);
  scanFrom(row, scan, keys, width, rows, 1, leaves);
}

#define SCAN(NAME, MOST, ATTRIBUTE)                                                                \
  ATTRIBUTE static void keys##NAME(const uint32_t *x, int64_t rows, int64_t features,              \
                                   bool mirrored, int32_t *to) {                                   \
    keysOfRows(x, rows, features, mirrored, to);                                                   \
  }                                                                                                \
  ATTRIBUTE static void scan##NAME(const heddle_scan_t *scan, const int32_t *keys, int64_t width,  \
                                   int64_t rows, uint32_t *leaves) {                               \
    scanRows(scan, keys, width, rows, MOST, leaves);                                               \
  }
SCAN(Any, 1, )
#if defined(__x86_64__)
#define V3 "sse3,ssse3,sse4.1,sse4.2,cx16,popcnt,avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe"
SCAN(V3, 2, __attribute__((target("arch=x86-64-v3"))))
#if defined(__clang__)
SCAN(V4, MOST_GROUPS, __attribute__((target("arch=x86-64-v4"), min_vector_width(512))))
#else
SCAN(V4, MOST_GROUPS, __attribute__((target("arch=x86-64-v4"))))
#endif
#endif

const heddle_scan_form_t heddle_scan_forms[] = {
#if defined(__x86_64__)
    {V3 ",avx512f,avx512bw,avx512cd,avx512dq,avx512vl", keysV4, scanV4},
    {V3, keysV3, scanV3},
#endif
    {"", keysAny, scanAny},
};

static const heddle_scan_form_t *widestForm(void) {
  for (const heddle_scan_form_t *form = heddle_scan_forms;; ++form) {
    heddle_text_t missing = {0};
    heddle_features_missing(form->features, &missing);
    bool isHere = missing.length == 0 && !missing.lost;
    heddle_text_free(&missing);
    if (isHere || !*form->features)
      return form;
  }
}

const heddle_scan_form_t *heddle_scan_form(void) {
  static const heddle_scan_form_t *_Atomic chosen; /* threads that choose at once choose the same */
  const heddle_scan_form_t *form = atomic_load_explicit(&chosen, memory_order_relaxed);
  if (!form)
    atomic_store_explicit(&chosen, form = widestForm(), memory_order_relaxed);
  return form;
}
