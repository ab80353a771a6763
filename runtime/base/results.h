/* results.h: memory of results, which is kept when a caller releases it, for runs to come.
 *
 * What the C library gets back it may return to the kernel, and the pages of the next results are
 * then mapped and cleared again: half of the time of a decoding step with 19 MB of results on two
 * threads (bench/notes/2026-11-22-results.md). SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_BASE_RESULTS_H
#define HEDDLE_BASE_RESULTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is kept. Any thread may call any function below. */
typedef struct heddle_results heddle_results_t;

/* NULL when out of memory. */
heddle_results_t *heddle_results_create(void);

/* Frees what is kept. Blocks that are still out are freed when they come back. */
void heddle_results_close(heddle_results_t *results);

/* From now on blocks for so many bytes are kept, if that is more than before. */
void heddle_results_keep(heddle_results_t *results, int64_t bytes);

/* Bytes kept now. */
int64_t heddle_results_kept(heddle_results_t *results);

/* 64-aligned, not zeroed; NULL when there is none or bytes < 0. Never NULL for 0 bytes. Without
 * `results` nothing is kept. */
void *heddle_result_allocate(heddle_results_t *results, int64_t bytes);

/* Takes back what heddle_result_allocate gave, or NULL. */
void heddle_result_free(void *data);

#ifdef __cplusplus
}
#endif
#endif
