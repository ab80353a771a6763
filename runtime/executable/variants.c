/* variants.c: see variants.h. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/executable/variants.h"

#include "runtime/executable/features.h"

#include <stdlib.h>
#include <string.h>

static bool isRunnable(const heddle_variant_t *variant, heddle_text_t *missing) {
  heddle_features_missing(variant->features, missing);
  return missing->length == 0 && !missing->lost;
}

static heddle_status_t *refuse(const heddle_variant_t *variants, int64_t count,
                               const char *origin) {
  heddle_text_t text = {0};
  for (int64_t i = 0; i < count; ++i) {
    heddle_text_t missing = {0};
    isRunnable(&variants[i], &missing);
    heddle_text_add(&text, "%s for '%s' it lacks %s", i ? ";" : "", variants[i].target,
                    missing.data ? missing.data : "?");
    heddle_text_free(&missing);
  }
  heddle_status_t *status = heddle_status_make(
      HEDDLE_REFUSED,
      "'%s' has code for %lld CPUs, but this machine can run none of them:%s; compile "
      "the model for this machine",
      origin, (long long)count, text.data ? text.data : " any of them");
  heddle_text_free(&text);
  return status;
}

static heddle_status_t *chooseNamed(const heddle_variant_t *variants, int64_t count,
                                    const char *origin, const char *name, int64_t *chosen) {
  heddle_text_t text = {0};
  heddle_status_t *status = NULL;
  int64_t found = 0;
  while (found < count && strcmp(variants[found].target, name) != 0)
    ++found;
  if (found == count) {
    for (int64_t i = 0; i < count; ++i)
      heddle_text_add(&text, "%s%s", i ? ", " : "", variants[i].target);
    status = heddle_status_make(HEDDLE_USAGE, "%s is '%s', but '%s' has code for: %s",
                                HEDDLE_CPU_VARIABLE, name, origin, text.data ? text.data : "?");
  } else if (!isRunnable(&variants[found], &text)) {
    status = heddle_status_make(HEDDLE_REFUSED,
                                "%s is '%s', but this machine lacks CPU features that '%s' needs "
                                "for it: %s",
                                HEDDLE_CPU_VARIABLE, name, origin, text.data ? text.data : "?");
  } else {
    *chosen = found;
  }
  heddle_text_free(&text);
  return status;
}

heddle_status_t *heddle_variants_choose(const heddle_variant_t *variants, int64_t count,
                                        const char *origin, int64_t *chosen) {
  const char *name = getenv(HEDDLE_CPU_VARIABLE);
  if (name && *name)
    return chooseNamed(variants, count, origin, name, chosen);
  for (int64_t i = 0; i < count; ++i) {
    heddle_text_t missing = {0};
    bool isFound = isRunnable(&variants[i], &missing);
    heddle_text_free(&missing);
    if (isFound) {
      *chosen = i;
      return NULL;
    }
  }
  return refuse(variants, count, origin);
}
