/* main.c: a compiled model inside a C program: no file to load, no thread unless asked for.
 * Feeds ones of the smallest allowed shape and prints what comes back. */
#include "heddle/runtime.h"
#include "model.h" /* extern const heddle_executable_t model_executable; */

#include <stdio.h>
#include <stdlib.h>

static void stopOn(heddle_status_t *status) {
  if (!status)
    return;
  fprintf(stderr, "error: %s\n", heddle_status_message(status));
  exit(heddle_status_code(status));
}

static heddle_tensor_t makeInput(const heddle_value_t *value) {
  heddle_tensor_t tensor = {.dtype = value->dtype, .rank = value->rank};
  int64_t count = 1;
  for (int i = 0; i < value->rank; ++i)
    count *= tensor.dims[i] = value->dims[i].value == HEDDLE_UNKNOWN ? 1 : value->dims[i].value;
  tensor.bytes = (count * heddle_dtype_bits(value->dtype) + 7) / 8;
  tensor.data = calloc((size_t)tensor.bytes + 1, 1);
  for (int64_t i = 0; value->dtype == HEDDLE_FLOAT32 && i < count; ++i)
    ((float *)tensor.data)[i] = 1;
  return tensor;
}

int main(void) {
  heddle_module_t *module;
  heddle_session_t *session;
  heddle_session_options_t options = {.size = sizeof options, .threads = 1};
  stopOn(heddle_module_from_executable(&model_executable, NULL, NULL, &module));
  stopOn(heddle_session_create(module, &options, &session));

  size_t inputCount = heddle_module_input_count(module);
  size_t outputCount = heddle_module_output_count(module);
  heddle_tensor_t *inputs = calloc(inputCount + 1, sizeof *inputs);
  heddle_tensor_t *outputs = calloc(outputCount + 1, sizeof *outputs); /* no data: allocated */
  for (size_t i = 0; i < inputCount; ++i)
    inputs[i] = makeInput(heddle_module_input(module, i));
  stopOn(heddle_session_run(session, inputs, inputCount, outputs, outputCount));

  for (size_t i = 0; i < outputCount; ++i) {
    printf("%s: %s[", heddle_module_output(module, i)->name, heddle_dtype_name(outputs[i].dtype));
    for (int j = 0; j < outputs[i].rank; ++j)
      printf("%s%lld", j ? "," : "", (long long)outputs[i].dims[j]);
    printf("]");
    for (int64_t j = 0; outputs[i].dtype == HEDDLE_FLOAT32 && j < 5 && j < outputs[i].bytes / 4;
         ++j)
      printf(" %g", ((float *)outputs[i].data)[j]);
    printf("\n");
    heddle_tensor_release(&outputs[i]);
  }
  for (size_t i = 0; i < inputCount; ++i)
    free(inputs[i].data);
  free(inputs), free(outputs);
  heddle_session_destroy(session);
  heddle_module_destroy(module);
}
