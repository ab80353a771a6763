/* text.h: the services on strings. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_SESSION_TEXT_H
#define HEDDLE_SESSION_TEXT_H

#include "runtime/executable/abi.h"
#include "runtime/session/strings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of the run under way. */
heddle_strings_t *heddle_run_strings(heddle_call_t *call);

void heddle_service_string_concat(heddle_call_t *call, int64_t *frame);
void heddle_service_string_split(heddle_call_t *call, int64_t *frame);
void heddle_service_string_normalize(heddle_call_t *call, int64_t *frame);
void heddle_service_string_match(heddle_call_t *call, int64_t *frame);
void heddle_service_string_cast(heddle_call_t *call, int64_t *frame);

/* Appends `text` with every letter in lower (upper) case, where it is UTF-8, and returns the end;
 * needs room for 2 * text.size bytes. Letters map one to one: the simple case mapping of Unicode
 * for Latin, Greek, Cyrillic, Armenian and full-width letters; other bytes stay. */
char *heddle_text_in_case(char *to, heddle_string_t text, bool isUpper);

#ifdef __cplusplus
}
#endif
#endif
