/* status.c: status objects. One block each; a constant one stands for "no memory for a message".
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/status.h"

#include "heddle/version.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct heddle_status {
  heddle_code_t code;
  char message[];
};

static const struct {
  heddle_code_t code;
  char message[56];
} kNoMemory = {HEDDLE_LIMIT, "out of memory, and no memory left to say what for"};

heddle_status_t *heddle_status_make(heddle_code_t code, const char *format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  int length = vsnprintf(NULL, 0, format, values);
  heddle_status_t *status =
      length < 0 ? NULL : malloc(sizeof(heddle_status_t) + (size_t)length + 1);
  if (status) {
    status->code = code;
    vsnprintf(status->message, (size_t)length + 1, format, again);
  }
  va_end(again);
  va_end(values);
  return status ? status : (heddle_status_t *)(void *)&kNoMemory;
}

heddle_code_t heddle_status_code(const heddle_status_t *status) {
  return status ? status->code : HEDDLE_OK;
}

const char *heddle_status_message(const heddle_status_t *status) {
  return status ? status->message : "";
}

void heddle_status_destroy(heddle_status_t *status) {
  if (status != (const heddle_status_t *)(const void *)&kNoMemory)
    free(status);
}

const char *heddle_version(void) { return HEDDLE_VERSION_STRING; }

void heddle_text_add(heddle_text_t *text, const char *format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  int length = vsnprintf(NULL, 0, format, values);
  size_t needed = text->length + (length < 0 ? 0 : (size_t)length) + 1;
  if (needed > text->capacity) {
    size_t capacity = needed * 2;
    char *data = realloc(text->data, capacity);
    if (data) {
      text->data = data;
      text->capacity = capacity;
    }
  }
  if (length >= 0 && needed <= text->capacity) {
    vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
  } else {
    text->lost = true;
  }
  va_end(again);
  va_end(values);
}

void heddle_text_free(heddle_text_t *text) {
  free(text->data);
  memset(text, 0, sizeof *text);
}
