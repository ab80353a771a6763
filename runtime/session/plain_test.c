/* plain_test.c: a C program with its model linked in and no threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "heddle/compiler.h"
#include "heddle/runtime.h"
#include "heddle/version.h"
#include "runtime/executable/testing/executables.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  heddle_module_t *module = NULL;
  heddle_session_t *session = NULL;
  heddle_status_t *status =
      heddle_module_from_executable(&increment_executable, NULL, NULL, &module);
  if (!status)
    status = heddle_session_create(module, NULL, &session);
  float x[4] = {1, 2, 3, 4}, z[1] = {10}, y[4] = {0};
  heddle_tensor_t inputs[] = {
      {.data = x, .bytes = sizeof x, .dtype = HEDDLE_FLOAT32, .rank = 2, .dims = {1, 4}},
      {.data = z, .bytes = sizeof z, .dtype = HEDDLE_FLOAT32, .rank = 1, .dims = {1}},
  };
  heddle_tensor_t output = {.data = y, .bytes = sizeof y};
  if (!status)
    status = heddle_session_run(session, inputs, 2, &output, 1);
  int failed = status || y[3] != 15 || heddle_session_threads(session) != 1;
  fprintf(stderr, "%s", heddle_status_message(status));
  heddle_status_destroy(status);

  heddle_session_options_t options = {.size = sizeof options, .threads = 2};
  heddle_session_t *threaded = NULL;
  status = heddle_session_create(module, &options, &threaded);
  failed |= heddle_status_code(status) != HEDDLE_USAGE ||
            !strstr(heddle_status_message(status), "linked without threads");
  heddle_status_destroy(status);
  heddle_module_destroy(module);
  heddle_session_destroy(session);
  return failed || strcmp(heddle_version(), HEDDLE_VERSION_STRING) != 0;
}
