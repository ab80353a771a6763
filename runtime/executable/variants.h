/* variants.h: of the forms that an artefact has for several CPUs and devices, the one to run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_EXECUTABLE_VARIANTS_H
#define HEDDLE_EXECUTABLE_VARIANTS_H

#include "runtime/base/status.h"
#include "runtime/executable/abi.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names the form to run, for tests; it has to be one that this CPU can run. */
#define HEDDLE_CPU_VARIABLE "HEDDLE_CPU"

typedef struct heddle_variant {
  const char *target;                    /* "x86-64-v3" */
  const char *features;                  /* "avx,avx2,..." */
  const heddle_executable_t *executable; /* whose devices it needs; NULL: none */
} heddle_variant_t;

/* The first of `count` > 0 forms that this machine can run, among those of the device that
 * HEDDLE_DEVICE names ("cpu": those without) if it names one, or the one that HEDDLE_CPU names.
 * Where there is none the message says what each form lacks. `origin`: whose forms. */
heddle_status_t *heddle_variants_choose(const heddle_variant_t *variants, int64_t count,
                                        const char *origin, int64_t *chosen);

#ifdef __cplusplus
}
#endif
#endif
