/* twisted.c: see executables.h. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/executable/testing/executables.h"

static const heddle_io_dim_t kVector[] = {{HEDDLE_DYNAMIC, 0, "n"}};
static const heddle_io_dim_t kFound[] = {{HEDDLE_DYNAMIC, -1, "found"}};
static const heddle_text_constant_t kStrings[] = {{"cat", 3}, {"dog", 3}};
static const heddle_io_t kInputs[] = {
    {"x", 1, 1, kVector, HEDDLE_ENCODING_DENSE, 0, 0, HEDDLE_IO_TENSOR, 0, -1},
    {"picks", 8, 1, kVector, HEDDLE_ENCODING_DENSE, 0, 0, HEDDLE_IO_TENSOR, 0, -1},
};
static const heddle_io_t kOutputs[] = {
    {"positive", 1, 1, kFound, HEDDLE_ENCODING_DENSE, 0, 0, HEDDLE_IO_TENSOR, 0, -1},
    {"names", 8, 1, kVector, HEDDLE_ENCODING_DENSE, 0, 0, HEDDLE_IO_TENSOR, 0, -1},
};
static const char *const kSymbols[] = {"n"};
static const char *const kMessages[] = {
    "element %lld of 'x' is not a number (100%% of %lld must be)"};

static int32_t sizes(const int64_t *symbols, int64_t *arenaBytes, int64_t *outputDims,
                     int64_t *values) {
  (void)values;
  *arenaBytes = 0;
  outputDims[0] = HEDDLE_DYNAMIC;
  outputDims[1] = symbols[0];
  return 0;
}

static int32_t run(heddle_call_t *call) {
  int64_t n = call->symbols[0], found = 0;
  const float *x = call->inputs[0];
  float *kept = call->alloc(call, n * (int64_t)sizeof(float));
  for (int64_t i = 0; kept && i < n; ++i) {
    if (x[i] != x[i])
      call->fail(call, 0, i, n);
    if (x[i] > 1e30f)
      call->alloc(call, INT64_C(1) << 46);
    if (x[i] > 0)
      kept[found++] = x[i];
  }
  if (call->status)
    return call->status;
  float *positive = call->alloc_output(call, 0, found * (int64_t)sizeof(float));
  if (!positive)
    return call->status;
  call->output_dims[0] = found;
  for (int64_t i = 0; i < found; ++i)
    positive[i] = kept[i];
  for (int64_t i = 0; i < n; ++i) {
    int64_t pick = ((const int64_t *)call->inputs[1])[i];
    ((int64_t *)call->outputs[1])[i] = pick == 0 ? 1 : pick; /* dogs, in place of cats */
  }
  return call->status;
}

const heddle_executable_t twisted_executable = {
    .magic = HEDDLE_EXECUTABLE_MAGIC,
    .abi_version = HEDDLE_ABI_VERSION,
    .model = "twisted",
    .producer = "hand",
    .target = "x86-64",
    .features = "",
    .input_count = 2,
    .output_count = 2,
    .symbol_count = 1,
    .message_count = 1,
    .inputs = kInputs,
    .outputs = kOutputs,
    .symbols = kSymbols,
    .messages = kMessages,
    .sizes = sizes,
    .run = run,
    .strings = kStrings,
    .string_count = 2,
};
