/* calls.h: kernels that are functions of a library: checked when a module is loaded, prepared once
 * a session and shape, run in place of a kernel's phases. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_LIBRARY_CALLS_H
#define HEDDLE_LIBRARY_CALLS_H

#include "runtime/base/status.h"
#include "runtime/executable/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Refuses an executable whose libraries are not on this machine, or whose calls make no sense. */
heddle_status_t *heddle_calls_check(const heddle_executable_t *executable, const char *origin);

/* What a session keeps of the calls of its executable; NULL where it has none. */
typedef struct heddle_calls heddle_calls_t;
heddle_status_t *heddle_calls_create(const heddle_executable_t *executable, int threads,
                                     heddle_calls_t **calls);
void heddle_calls_destroy(heddle_calls_t *calls);

/* A call made ready for the shapes of a frame of HEDDLE_SERVICE_LIBRARY. NULL with `failure` 0 when
 * there is nothing to compute; else `failure` is what the library said, and at least 1. */
typedef struct heddle_prepared heddle_prepared_t;
heddle_prepared_t *heddle_calls_prepare(heddle_calls_t *calls, const int64_t *frame,
                                        int32_t *failure);
int64_t heddle_prepared_scratch(const heddle_prepared_t *prepared);
/* Returns what the library said: 0 when all is well. `scratch` is 64-aligned. */
int32_t heddle_prepared_run(heddle_calls_t *calls, heddle_prepared_t *prepared,
                            const int64_t *frame, void *scratch);
void heddle_prepared_release(heddle_calls_t *calls, heddle_prepared_t *prepared);

#ifdef __cplusplus
}
#endif
#endif
