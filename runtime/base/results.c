/* results.c: a list of released blocks, latest first. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/results.h"

#include "runtime/base/guard.h"
#include "runtime/base/tensor.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
  HEAD = 64,           /* bytes before the data, which is aligned to as many */
  SMALL = 1 << 16,     /* bytes up to which the C library is as fast */
  CLASSES_A_DOUBLE = 8 /* sizes are rounded up, so that results that grow find room */
};

typedef struct block {
  heddle_results_t *results; /* NULL: not kept */
  struct block *next;
  int64_t bytes;
} block_t;

_Static_assert(sizeof(block_t) <= HEAD, "a block's head is before its data");

struct heddle_results {
  pthread_mutex_t mutex;
  block_t *first;
  int64_t out; /* blocks that callers have */
  int64_t kept, limit;
  bool is_closed;
};

heddle_results_t *heddle_results_create(void) {
  heddle_results_t *results = calloc(1, sizeof *results);
  if (results)
    pthread_mutex_init(&results->mutex, NULL);
  return results;
}

/* Takes the last blocks off until the rest is within the limit. */
static block_t *surplus(heddle_results_t *results) {
  int64_t bytes = 0;
  block_t **place = &results->first;
  while (*place && bytes + (*place)->bytes <= results->limit) {
    bytes += (*place)->bytes;
    place = &(*place)->next;
  }
  block_t *rest = *place;
  *place = NULL;
  results->kept = bytes;
  return rest;
}

static void freeAll(block_t *block) {
  while (block) {
    block_t *next = block->next;
    free(block);
    block = next;
  }
}

/* Unlocks; the last one out of a closed store takes it down. */
static void leave(heddle_results_t *results) {
  bool isLast = results->is_closed && results->out == 0;
  pthread_mutex_unlock(&results->mutex);
  if (!isLast)
    return;
  pthread_mutex_destroy(&results->mutex);
  free(results);
}

void heddle_results_close(heddle_results_t *results) {
  pthread_mutex_lock(&results->mutex);
  results->is_closed = true;
  results->limit = 0;
  freeAll(surplus(results));
  leave(results);
}

void heddle_results_keep(heddle_results_t *results, int64_t bytes) {
  bytes += bytes / CLASSES_A_DOUBLE; /* what rounding adds */
  pthread_mutex_lock(&results->mutex);
  if (bytes > results->limit)
    results->limit = bytes;
  pthread_mutex_unlock(&results->mutex);
}

int64_t heddle_results_kept(heddle_results_t *results) {
  pthread_mutex_lock(&results->mutex);
  int64_t kept = results->kept;
  pthread_mutex_unlock(&results->mutex);
  return kept;
}

static block_t *create(int64_t bytes) {
  block_t *block = heddle_memory_allocate(bytes < 0 ? bytes : bytes + HEAD);
  if (block) {
    *block = (block_t){NULL, NULL, bytes};
    heddle_guard(block + 1, HEAD - (int64_t)sizeof *block);
  }
  return block;
}

/* A kept block of at least, and less than twice, so many bytes. */
static block_t *takeKept(heddle_results_t *results, int64_t bytes) {
  for (block_t **place = &results->first; *place; place = &(*place)->next) {
    block_t *block = *place;
    if (block->bytes < bytes || block->bytes / 2 >= bytes)
      continue;
    *place = block->next;
    results->kept -= block->bytes;
    return block;
  }
  return NULL;
}

void *heddle_result_allocate(heddle_results_t *results, int64_t bytes) {
  if (!results || bytes <= SMALL) {
    block_t *block = create(bytes);
    return block ? (char *)block + HEAD : NULL;
  }
  pthread_mutex_lock(&results->mutex);
  block_t *block = takeKept(results, bytes);
  results->out += block != NULL;
  pthread_mutex_unlock(&results->mutex);
  if (!block) {
    int64_t step = 1;
    while (step * 2 * CLASSES_A_DOUBLE <= bytes)
      step *= 2;
    block = create((bytes + step - 1) / step * step);
    if (!block)
      return NULL;
    block->results = results;
    pthread_mutex_lock(&results->mutex);
    ++results->out;
    pthread_mutex_unlock(&results->mutex);
  }
  return (char *)block + HEAD;
}

void heddle_result_free(void *data) {
  if (!data)
    return;
  block_t *block = (block_t *)((char *)data - HEAD);
  heddle_results_t *results = block->results;
  block->next = NULL;
  if (!results) {
    free(block);
    return;
  }
  pthread_mutex_lock(&results->mutex);
  --results->out;
  block->next = results->first;
  results->first = block;
  block_t *rest = surplus(results);
  leave(results);
  freeAll(rest);
}
