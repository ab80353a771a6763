/* run_artefact.c: runs an artefact on tensors that come through standard input, for machines that
 * an emulator plays: `run_artefact MODEL.so THREADS <inputs >outputs`.
 *
 * A tensor is dtype and rank (int32), its dims and the number of its bytes (int64), the bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "heddle/runtime.h"

#include <stdio.h>
#include <stdlib.h>

static void stopOn(heddle_status_t *status) {
  if (!status)
    return;
  fprintf(stderr, "%s\n", heddle_status_message(status));
  exit(heddle_status_code(status));
}

static void readAll(void *to, size_t bytes) {
  if (fread(to, 1, bytes, stdin) == bytes)
    return;
  fprintf(stderr, "run_artefact: the inputs end too early\n");
  exit(HEDDLE_USAGE);
}

static void writeAll(const void *from, size_t bytes) {
  if (fwrite(from, 1, bytes, stdout) != bytes)
    exit(HEDDLE_LIMIT);
}

static heddle_tensor_t readTensor(void) {
  heddle_tensor_t tensor = {0};
  readAll(&tensor.dtype, sizeof tensor.dtype);
  readAll(&tensor.rank, sizeof tensor.rank);
  if (tensor.rank < 0 || tensor.rank > HEDDLE_MAX_RANK)
    exit(HEDDLE_USAGE);
  readAll(tensor.dims, (size_t)tensor.rank * sizeof *tensor.dims);
  readAll(&tensor.bytes, sizeof tensor.bytes);
  size_t bytes = (size_t)tensor.bytes;
  tensor.data = aligned_alloc(64, (bytes + 64) / 64 * 64);
  if (!tensor.data)
    exit(HEDDLE_LIMIT);
  readAll(tensor.data, bytes);
  return tensor;
}

static void writeTensor(const heddle_tensor_t *tensor) {
  int64_t bits = heddle_dtype_bits(tensor->dtype);
  for (int i = 0; i < tensor->rank; ++i)
    bits *= tensor->dims[i];
  int64_t bytes = (bits + 7) / 8;
  writeAll(&tensor->dtype, sizeof tensor->dtype);
  writeAll(&tensor->rank, sizeof tensor->rank);
  writeAll(tensor->dims, (size_t)tensor->rank * sizeof *tensor->dims);
  writeAll(&bytes, sizeof bytes);
  writeAll(tensor->data, (size_t)bytes);
}

int main(int argc, char **argv) {
  if (argc != 3)
    return HEDDLE_USAGE;
  heddle_module_t *module;
  heddle_session_t *session;
  heddle_session_options_t options = {.size = sizeof options, .threads = atoi(argv[2])};
  stopOn(heddle_module_load(argv[1], &module));
  fprintf(stderr, "target %s\n", heddle_module_info(module).target);
  stopOn(heddle_session_create(module, &options, &session));

  size_t inputCount = heddle_module_input_count(module);
  size_t outputCount = heddle_module_output_count(module);
  heddle_tensor_t *inputs = calloc(inputCount + 1, sizeof *inputs);
  heddle_tensor_t *outputs = calloc(outputCount + 1, sizeof *outputs); /* no data: allocated */
  for (size_t i = 0; i < inputCount; ++i)
    inputs[i] = readTensor();
  stopOn(heddle_session_run(session, inputs, inputCount, outputs, outputCount));
  for (size_t i = 0; i < outputCount; ++i) {
    writeTensor(&outputs[i]);
    heddle_tensor_release(&outputs[i]);
  }
  for (size_t i = 0; i < inputCount; ++i)
    free(inputs[i].data);
  free(inputs), free(outputs);
  heddle_session_destroy(session);
  heddle_module_destroy(module);
  return fflush(stdout) ? HEDDLE_LIMIT : HEDDLE_OK;
}
