/* status.h: making status objects, and text that grows. Neither can fail visibly: without memory a
 * status becomes the constant one that says so. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_BASE_STATUS_H
#define HEDDLE_BASE_STATUS_H

#include "heddle/runtime.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

heddle_status_t *heddle_status_make(heddle_code_t code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text in pieces. Zero it to begin; heddle_text_free ends it. */
typedef struct heddle_text {
  char *data; /* NULL while empty */
  size_t length, capacity;
  bool lost; /* a piece did not fit into memory */
} heddle_text_t;

void heddle_text_add(heddle_text_t *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void heddle_text_free(heddle_text_t *text);

#ifdef __cplusplus
}
#endif
#endif
