/* variants.c: see variants.h. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/executable/variants.h"

#include "runtime/device/device.h"
#include "runtime/executable/features.h"

#include <stdlib.h>
#include <string.h>

/* Adds "lacks avx2" or "needs an NVIDIA GPU, but ..." where this machine cannot run the form. */
static bool isRunnable(const heddle_variant_t *variant, heddle_text_t *why) {
  heddle_text_t missing = {0};
  heddle_features_missing(variant->features, &missing);
  if (missing.length)
    heddle_text_add(why, "lacks %s", missing.data);
  else if (variant->executable)
    heddle_devices_missing(variant->executable, why);
  why->lost |= missing.lost;
  heddle_text_free(&missing);
  return why->length == 0 && !why->lost;
}

/* The first device of a form: "cpu", or "cuda". */
static const char *deviceOf(const heddle_variant_t *variant) {
  bool hasDevice = variant->executable && variant->executable->device_count;
  return hasDevice ? variant->executable->devices[0].space : "cpu";
}

static bool isWanted(const heddle_variant_t *variant) {
  const char *named = getenv(HEDDLE_DEVICE_VARIABLE);
  return !named || !*named || strcmp(deviceOf(variant), named) == 0;
}

static heddle_status_t *refuse(const heddle_variant_t *variants, int64_t count,
                               const char *origin) {
  heddle_text_t text = {0};
  for (int64_t i = 0; i < count; ++i) {
    heddle_text_t why = {0};
    if (!isWanted(&variants[i]))
      continue;
    isRunnable(&variants[i], &why);
    heddle_text_add(&text, "%s for '%s' it %s", text.length ? ";" : "", variants[i].target,
                    why.data ? why.data : "?");
    heddle_text_free(&why);
  }
  if (!text.length && !text.lost) {
    for (int64_t i = 0; i < count; ++i)
      heddle_text_add(&text, "%s%s", i ? ", " : "", deviceOf(&variants[i]));
    heddle_status_t *status = heddle_status_make(
        HEDDLE_USAGE, "%s is '%s', but '%s' has code for: %s", HEDDLE_DEVICE_VARIABLE,
        getenv(HEDDLE_DEVICE_VARIABLE), origin, text.data ? text.data : "?");
    heddle_text_free(&text);
    return status;
  }
  heddle_status_t *status =
      heddle_status_make(HEDDLE_REFUSED,
                         "'%s' has code for %lld machines, of which this is none:%s; compile "
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
                                "%s is '%s', but this machine cannot run what '%s' has for it: it "
                                "%s",
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
    heddle_text_t why = {0};
    bool isFound = isWanted(&variants[i]) && isRunnable(&variants[i], &why);
    heddle_text_free(&why);
    if (isFound) {
      *chosen = i;
      return NULL;
    }
  }
  return refuse(variants, count, origin);
}
