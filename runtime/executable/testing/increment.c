/* increment.c: see executables.h. Also built as artefacts for the loader, sound and damaged.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/executable/testing/executables.h"

#ifndef FEATURES
#define FEATURES ""
#endif
#ifndef ABI_VERSION
#define ABI_VERSION HEDDLE_ABI_VERSION
#endif
#define EXPORTED __attribute__((visibility("default")))

enum { COLUMNS = 4 };

static const heddle_io_dim_t kMatrix[] = {{HEDDLE_DYNAMIC, 0, "batch"}, {COLUMNS, -1, "4"}};
static const heddle_io_t kInputs[] = {
    {"x", 1, 2, kMatrix, HEDDLE_ENCODING_DENSE, 0, 0, HEDDLE_IO_TENSOR, 0, -1},
    {"z", 1, 1, kMatrix, HEDDLE_ENCODING_DENSE, 0, 0, HEDDLE_IO_TENSOR, 0, -1},
};
static const heddle_io_t kOutputs[] = {
    {"y", 1, 2, kMatrix, HEDDLE_ENCODING_DENSE, 0, 0, HEDDLE_IO_TENSOR, 0, /*shares=*/0}};
static const char *const kSymbols[] = {"batch"};
static const float kOne = 1;

static int32_t sizes(const int64_t *symbols, int64_t *arenaBytes, int64_t *outputDims,
                     int64_t *values) {
  (void)values;
  *arenaBytes = symbols[0] * (int64_t)sizeof(float);
  outputDims[0] = symbols[0];
  outputDims[1] = COLUMNS;
  return 0;
}

static void addOne(const int64_t *args, int64_t begin, int64_t end, uint8_t *scratch) {
  const heddle_call_t *call = (const heddle_call_t *)args[0];
  const float *z = call->inputs[1], *one = (const float *)call->weights;
  float *shift = (float *)call->arena;
  (void)scratch;
  for (int64_t i = begin; i < end; ++i)
    shift[i] = z[i] + *one;
}

static void addRows(const int64_t *args, int64_t begin, int64_t end, uint8_t *scratch) {
  const heddle_call_t *call = (const heddle_call_t *)args[0];
  const float *x = call->inputs[0], *shift = (const float *)call->arena;
  float *y = call->outputs[0], *row = (float *)scratch;
  for (int64_t i = begin; i < end; ++i) {
    for (int j = 0; j < COLUMNS; ++j)
      row[j] = x[i * COLUMNS + j] + shift[i];
    for (int j = 0; j < COLUMNS; ++j)
      y[i * COLUMNS + j] = row[j];
  }
}

static int32_t run(heddle_call_t *call) {
  const int64_t args[] = {(int64_t)(intptr_t)call};
  call->launch(call, addOne, args, call->symbols[0], 0);
  call->launch(call, addRows, args, call->symbols[0], COLUMNS * sizeof(float));
  return call->status;
}

#define INCREMENT                                                                                  \
  {                                                                                                \
      .magic = HEDDLE_EXECUTABLE_MAGIC,                                                            \
      .abi_version = ABI_VERSION,                                                                  \
      .model = "increment",                                                                        \
      .producer = "hand",                                                                          \
      .target = "x86-64",                                                                          \
      .features = FEATURES,                                                                        \
      .input_count = 2,                                                                            \
      .output_count = 1,                                                                           \
      .symbol_count = 1,                                                                           \
      .inputs = kInputs,                                                                           \
      .outputs = kOutputs,                                                                         \
      .symbols = kSymbols,                                                                         \
      .weights = (const uint8_t *)&kOne,                                                           \
      .weights_bytes = sizeof kOne,                                                                \
      .sizes = sizes,                                                                              \
      .run = run,                                                                                  \
  }

EXPORTED const heddle_executable_t heddle_executable = INCREMENT;
EXPORTED const heddle_executable_t increment_executable = INCREMENT;
