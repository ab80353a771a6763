/* features.h: does this CPU have what compiled code needs? SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_EXECUTABLE_FEATURES_H
#define HEDDLE_EXECUTABLE_FEATURES_H

#include "runtime/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the names in `features` (comma separated) that this CPU or its operating system lacks,
 * or that this runtime has never heard of, to `missing`: "avx512f, amx-int8". */
void heddle_features_missing(const char *features, heddle_text_t *missing);

#ifdef __cplusplus
}
#endif
#endif
