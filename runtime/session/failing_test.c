/* failing_test.c: each allocation of load, create and run fails once; every time there is a status
 * that says so, and nothing is lost. Linked with --wrap for the allocators.
 * SPDX-License-Identifier: Apache-2.0 */
#include "heddle/runtime.h"
#include "runtime/executable/testing/executables.h"

#include <stdio.h>
#include <stdlib.h>

static long left = -1;    /* allocations until the one that fails; negative: none does */
static _Atomic long live; /* blocks, to find leaks; workers free too */

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
int __real_posix_memalign(void **, size_t, size_t);
void __real_free(void *);

static int fails(void) { return left >= 0 && left-- == 0; }

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : (++live, __real_malloc(bytes)); }
void *__wrap_calloc(size_t count, size_t bytes) {
  return fails() ? NULL : (++live, __real_calloc(count, bytes));
}
void *__wrap_realloc(void *old, size_t bytes) {
  return fails() ? NULL : (live += !old, __real_realloc(old, bytes));
}
int __wrap_posix_memalign(void **result, size_t alignment, size_t bytes) {
  return fails() ? 12 : (++live, __real_posix_memalign(result, alignment, bytes));
}
void __wrap_free(void *block) {
  live -= block != NULL;
  __real_free(block);
}

/* The whole life of a model; with wrong feeds when isWrong. */
static heddle_status_t *live_once(int isWrong) {
  float x[] = {1, 2, 3};
  heddle_string_t picks[] = {{"dog", 3}, {"cat", 3}, {"cow", 3}};
  heddle_module_t *module = NULL;
  heddle_session_t *session = NULL;
  heddle_session_options_t options = {.size = sizeof options, .threads = 2};
  heddle_tensor_t
      outputs[2] = {0},
      inputs[] = {
          {.data = x, .bytes = sizeof x, .dtype = 1 + isWrong, .rank = 1, .dims = {3}},
          {.data = picks, .bytes = sizeof picks, .dtype = HEDDLE_STRING, .rank = 1, .dims = {3}},
      };
  heddle_status_t *status = heddle_module_from_executable(&twisted_executable, NULL, NULL, &module);
  if (!status)
    status = heddle_session_create(module, &options, &session);
  if (!status)
    status = heddle_session_run(session, inputs, 2, outputs, 2);
  if (status && (outputs[0].data || outputs[1].data))
    puts("a failed run left an output"), exit(1);
  heddle_tensor_release(&outputs[0]);
  heddle_tensor_release(&outputs[1]);
  heddle_session_destroy(session);
  heddle_module_destroy(module);
  return status;
}

int main(void) {
  for (int isWrong = 0; isWrong < 2; ++isWrong) {
    for (long nth = 0;; ++nth) {
      left = nth;
      heddle_status_t *status = live_once(isWrong);
      int isSurvivor = left >= 0; /* fewer allocations than nth: nothing failed */
      heddle_code_t code = heddle_status_code(status);
      left = -1;
      if (isSurvivor ? code != (isWrong ? HEDDLE_USAGE : HEDDLE_OK)
                     : code != HEDDLE_LIMIT && !(isWrong && code == HEDDLE_USAGE))
        return printf("allocation %ld: code %d: %s\n", nth, code, heddle_status_message(status)), 1;
      heddle_status_destroy(status);
      if (live)
        return printf("allocation %ld: %ld blocks are lost\n", nth, live), 1;
      if (isSurvivor) {
        printf("%ld allocations failed one after the other\n", nth);
        break;
      }
    }
  }
  return 0;
}
