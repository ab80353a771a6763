/* scan.h: small decision trees as lists of conditions, asked of many rows at once
 * (compiler/lower/program/ForestScans.h). SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_ROUTINE_SCAN_H
#define HEDDLE_ROUTINE_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HEDDLE_SCAN_LEAVES = 64 }; /* at most, of a tree */

typedef struct heddle_scan {
  int32_t count;             /* of conditions, 0 where there is no scan of the tree */
  const int32_t *conditions; /* [count, 4]: feature, limit, leaves open above it (low, high) */
  const int32_t *leaves;     /* [count + 1]: their nodes */
} heddle_scan_t;

/* The scan at *words, which are moved after it. */
heddle_scan_t heddle_scan_next(const int32_t **words);
typedef struct heddle_scan_form {
  const char *features; /* of the CPU that it needs, comma separated */
  /* The keys of rows of f32 x [rows, features], as `scan` reads them; `mirrored`: of twice as many
   * features, NaN the smallest in the second half. `to` has room for a multiple of 16 rows. */
  void (*keys)(const uint32_t *x, int64_t rows, int64_t features, bool mirrored, int32_t *to);
  /* The number of the leaf that each row reaches; `width` is how many features the keys have, and
   * `leaves` has room for a multiple of 16 rows. */
  void (*scan)(const heddle_scan_t *scan, const int32_t *keys, int64_t width, int64_t rows,
               uint32_t *leaves);
} heddle_scan_form_t;

/* The same code for registers of several widths, the widest first; the last needs no feature. */
extern const heddle_scan_form_t heddle_scan_forms[];
/* The widest that this CPU has. */
const heddle_scan_form_t *heddle_scan_form(void);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ROUTINE_SCAN_H */
