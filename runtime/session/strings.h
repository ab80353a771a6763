/* strings.h: the table of strings of one run: the model's first, then what comes in or is made.
 * Equal strings have one number. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_SESSION_STRINGS_H
#define HEDDLE_SESSION_STRINGS_H

#include "heddle/runtime.h"
#include "runtime/executable/abi.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_added_string {
  heddle_string_t text; /* points to the run's memory */
  int64_t slot;
} heddle_added_string_t;

typedef struct heddle_strings {
  const heddle_text_constant_t *constants;
  int64_t constant_count;
  heddle_added_string_t *added; /* numbers from constant_count on */
  int64_t added_count, added_capacity;
  uint64_t *slots; /* open addressing: 0, or 1 + a number, under 16 bits of the hash */
  int64_t slot_count;
} heddle_strings_t;

/* The number of these bytes, which must live as long as the run; -1 when out of memory. */
int64_t heddle_strings_number(heddle_strings_t *strings, const char *data, size_t size);
/* The bytes of a number that heddle_strings_number gave, or that a constant of the model has. */
heddle_string_t heddle_strings_text(const heddle_strings_t *strings, int64_t number);
/* Forgets what was added; the model's own stay. */
void heddle_strings_reset(heddle_strings_t *strings);
void heddle_strings_free(heddle_strings_t *strings);

#ifdef __cplusplus
}
#endif
#endif
