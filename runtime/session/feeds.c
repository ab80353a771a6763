/* feeds.c: wrong feeds become one message with all that is wrong, before any code of the model
 * runs: generated code trusts sizes and pointers. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/session/feeds.h"

#include "runtime/base/status.h"
#include "runtime/base/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *modelName(const heddle_module_t *module) {
  return module->executable->model ? module->executable->model : "";
}

static void addShape(heddle_text_t *text, const heddle_tensor_t *tensor) {
  heddle_text_add(text, "[");
  for (int32_t i = 0; i < tensor->rank; ++i)
    heddle_text_add(text, "%s%" PRId64, i ? "," : "", tensor->dims[i]);
  heddle_text_add(text, "]");
}

static void addAllowed(heddle_text_t *text, const heddle_io_t *allowed) {
  if (allowed->kind == HEDDLE_IO_ANY_RANK) {
    heddle_text_add(text, " of any rank");
    return;
  }
  heddle_text_add(text, "[");
  for (int32_t i = 0; i < allowed->rank; ++i)
    heddle_text_add(text, "%s%s", i ? "," : "", allowed->dims[i].text);
  heddle_text_add(text, "]");
}

static bool isAligned(const heddle_tensor_t *tensor) {
  uintptr_t bytes = (uintptr_t)heddle_dtype_bits(tensor->dtype) / 8;
  return bytes < 2 || (uintptr_t)tensor->data % (bytes > 8 ? 8 : bytes) == 0;
}

static void checkStrings(const heddle_tensor_t *tensor, const heddle_io_t *allowed,
                         heddle_text_t *problems) {
  const heddle_string_t *texts = tensor->data;
  int64_t count = heddle_tensor_bytes(HEDDLE_UINT8, tensor->rank, tensor->dims);
  for (int64_t i = 0; i < count; ++i)
    if (texts[i].size && !texts[i].data) {
      heddle_text_add(problems, "\n  input '%s': the data of string %" PRId64 " is NULL",
                      allowed->name, i);
      return;
    }
}

static void checkData(const heddle_tensor_t *tensor, const heddle_io_t *allowed,
                      heddle_text_t *problems) {
  int64_t bytes = heddle_tensor_bytes(tensor->dtype, tensor->rank, tensor->dims);
  if (bytes == 0)
    return;
  if (!tensor->data)
    heddle_text_add(problems, "\n  input '%s': its data is NULL", allowed->name);
  else if (tensor->bytes < bytes)
    heddle_text_add(
        problems, "\n  input '%s': its buffer has %" PRId64 " bytes, but its shape needs %" PRId64,
        allowed->name, tensor->bytes, bytes);
  else if (!isAligned(tensor))
    heddle_text_add(problems, "\n  input '%s': its data is not aligned for %s", allowed->name,
                    heddle_dtype_name(tensor->dtype));
  else if (tensor->dtype == HEDDLE_STRING)
    checkStrings(tensor, allowed, problems);
}

/* One tensor of a list, or the one of any rank. */
static void checkItem(const heddle_tensor_t *item, int64_t number, const heddle_io_t *allowed,
                      bool withData, heddle_text_t *problems) {
  if (item->dtype != allowed->dtype)
    heddle_text_add(problems,
                    "\n  input '%s': tensor %" PRId64 " has dtype %s (%d), but %s (%d) is allowed",
                    allowed->name, number, heddle_dtype_name(item->dtype), item->dtype,
                    heddle_dtype_name(allowed->dtype), allowed->dtype);
  else if (item->rank < 0 || item->rank > HEDDLE_MAX_RANK ||
           (allowed->tensor_rank >= 0 && item->rank != allowed->tensor_rank))
    heddle_text_add(problems, "\n  input '%s': tensor %" PRId64 " has rank %d, but %d is allowed",
                    allowed->name, number, item->rank, allowed->tensor_rank);
  else if (heddle_tensor_bytes(item->dtype, item->rank, item->dims) < 0)
    heddle_text_add(problems, "\n  input '%s': tensor %" PRId64 " has sizes that cannot be",
                    allowed->name, number);
  else if (withData)
    checkData(item, allowed, problems);
}

static void checkList(const heddle_tensor_t *list, const heddle_io_t *allowed, bool withData,
                      heddle_text_t *problems) {
  if (allowed->kind == HEDDLE_IO_ANY_RANK) {
    checkItem(list, 0, allowed, withData, problems);
    return;
  }
  bool mayBeAbsent = allowed->kind != HEDDLE_IO_SEQUENCE;
  int64_t most = allowed->kind == HEDDLE_IO_OPTIONAL ? 1 : INT64_MAX / (int64_t)sizeof *list;
  if (list->dtype != HEDDLE_SEQUENCE || list->rank != 1) {
    heddle_text_add(
        problems, "\n  input '%s': it is %s of rank %d, but %s is allowed (dtype %d, rank 1)",
        allowed->name, heddle_dtype_name(list->dtype), list->rank,
        allowed->kind == HEDDLE_IO_OPTIONAL ? "an optional" : "a sequence", HEDDLE_SEQUENCE);
    return;
  }
  if (list->dims[0] < (mayBeAbsent ? -1 : 0) || list->dims[0] > most) {
    heddle_text_add(problems, "\n  input '%s': it has %" PRId64 " tensors, which cannot be",
                    allowed->name, list->dims[0]);
    return;
  }
  if (!withData || list->dims[0] <= 0)
    return;
  if (!list->data || list->bytes < list->dims[0] * (int64_t)sizeof *list) {
    heddle_text_add(problems, "\n  input '%s': its tensors are missing", allowed->name);
    return;
  }
  for (int64_t i = 0; i < list->dims[0]; ++i)
    checkItem((const heddle_tensor_t *)list->data + i, i, allowed, true, problems);
}

/* True when dtype, rank and every constant dim fit, so that dims may be looked at. */
static bool checkShape(const heddle_tensor_t *tensor, const heddle_io_t *allowed,
                       heddle_text_t *problems) {
  if (tensor->dtype != allowed->dtype) {
    heddle_text_add(problems, "\n  input '%s': its dtype is %s (%d), but %s (%d) is allowed",
                    allowed->name, heddle_dtype_name(tensor->dtype), tensor->dtype,
                    heddle_dtype_name(allowed->dtype), allowed->dtype);
  }
  bool isFitting = tensor->rank == allowed->rank;
  for (int32_t i = 0; isFitting && i < tensor->rank; ++i)
    isFitting = tensor->dims[i] >= 0 && (allowed->dims[i].value == HEDDLE_DYNAMIC ||
                                         allowed->dims[i].value == tensor->dims[i]);
  if (tensor->rank < 0 || tensor->rank > HEDDLE_MAX_RANK) {
    heddle_text_add(problems, "\n  input '%s': its rank is %d, but %d is allowed", allowed->name,
                    tensor->rank, allowed->rank);
  } else if (!isFitting) {
    heddle_text_add(problems, "\n  input '%s': its shape is ", allowed->name);
    addShape(problems, tensor);
    heddle_text_add(problems, ", but ");
    addAllowed(problems, allowed);
    heddle_text_add(problems, " is allowed");
  } else if (heddle_tensor_bytes(tensor->dtype, tensor->rank, tensor->dims) == HEDDLE_TOO_LARGE) {
    heddle_text_add(problems, "\n  input '%s': its shape ", allowed->name);
    addShape(problems, tensor);
    heddle_text_add(problems, " is larger than an address space");
    return false;
  }
  return isFitting && tensor->dtype == allowed->dtype;
}

/* Names the first input that bound `symbol`, to which inputs[input] dim `dim` disagrees. */
static void addDisagreement(const heddle_module_t *module, const heddle_tensor_t *inputs,
                            const int64_t *symbols, int32_t input, int32_t dim,
                            heddle_text_t *problems) {
  const heddle_io_t *all = module->executable->inputs;
  int64_t symbol = all[input].dims[dim].symbol;
  for (int32_t i = 0; i <= input; ++i) {
    for (int32_t j = 0; j < all[i].rank; ++j) {
      if (all[i].dims[j].symbol != symbol || inputs[i].rank != all[i].rank ||
          inputs[i].dims[j] != symbols[symbol])
        continue;
      heddle_text_add(problems,
                      "\n  '%s' is %" PRId64 " in dim %d of input '%s', but %" PRId64
                      " in dim %d of input '%s'; they must agree",
                      module->executable->symbols[symbol], symbols[symbol], j, all[i].name,
                      inputs[input].dims[dim], dim, all[input].name);
      return;
    }
  }
}

static void bindSymbols(const heddle_module_t *module, const heddle_tensor_t *inputs, int32_t input,
                        int64_t *symbols, heddle_text_t *problems) {
  const heddle_io_t *allowed = &module->executable->inputs[input];
  for (int32_t i = 0; i < allowed->rank; ++i) {
    int64_t symbol = allowed->dims[i].symbol;
    if (symbol < 0)
      continue;
    if (symbols[symbol] == HEDDLE_UNKNOWN)
      symbols[symbol] = inputs[input].dims[i];
    else if (symbols[symbol] != inputs[input].dims[i])
      addDisagreement(module, inputs, symbols, input, i, problems);
  }
}

static heddle_status_t *finish(const heddle_module_t *module, heddle_text_t *problems,
                               const char *what) {
  heddle_status_t *status = NULL;
  if (problems->lost && !problems->length)
    status = heddle_status_make(HEDDLE_LIMIT, "model '%s': %s, and no memory to say which",
                                modelName(module), what);
  else if (problems->length)
    status = heddle_status_make(HEDDLE_USAGE, "model '%s': %s:%s", modelName(module), what,
                                problems->data ? problems->data : "");
  heddle_text_free(problems);
  return status;
}

static bool overlaps(const heddle_tensor_t *a, int64_t aBytes, const heddle_tensor_t *b,
                     int64_t bBytes) {
  uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
  return x && y && aBytes > 0 && bBytes > 0 && x < y + (uintptr_t)bBytes &&
         y < x + (uintptr_t)aBytes;
}

/* Whether the run writes the input. */
static bool isBuffer(const heddle_io_t *inputs, int32_t i) { return inputs[i].shares == i; }

static int64_t bytesOf(const heddle_tensor_t *tensor) {
  return heddle_tensor_bytes(tensor->dtype, tensor->rank, tensor->dims);
}

/* A buffer that the run writes may not overlap another input. */
static void checkBuffers(const heddle_executable_t *executable, const heddle_tensor_t *inputs,
                         heddle_text_t *problems) {
  for (int32_t i = 0; i < executable->input_count; ++i) {
    if (!isBuffer(executable->inputs, i))
      continue;
    int64_t bytes = bytesOf(&inputs[i]);
    uintptr_t end = (uintptr_t)inputs[i].data + (uintptr_t)bytes;
    for (int32_t j = 0; j < executable->input_count; ++j)
      if (j != i && (uintptr_t)inputs[j].data < end &&
          (j < i || !isBuffer(executable->inputs, j)) &&
          overlaps(&inputs[i], bytes, &inputs[j], bytesOf(&inputs[j])))
        heddle_text_add(problems, "\n  input '%s': it overlaps input '%s', but the run writes it",
                        executable->inputs[i].name, executable->inputs[j].name);
  }
}

heddle_status_t *heddle_feeds_bind(const heddle_module_t *module, const heddle_tensor_t *inputs,
                                   size_t count, bool withData, int64_t *symbols) {
  const heddle_executable_t *executable = module->executable;
  heddle_text_t problems = {0};
  if (count != (size_t)executable->input_count || (count && !inputs)) {
    heddle_text_add(&problems, "\n  %zu inputs given, but it takes %d:", inputs ? count : 0,
                    executable->input_count);
    for (int32_t i = 0; i < executable->input_count; ++i) {
      heddle_text_add(&problems, "%s '%s' %s", i ? "," : "", executable->inputs[i].name,
                      heddle_dtype_name(executable->inputs[i].dtype));
      addAllowed(&problems, &executable->inputs[i]);
    }
    return finish(module, &problems, "wrong inputs");
  }
  for (int32_t i = 0; i < executable->symbol_count; ++i)
    symbols[i] = HEDDLE_UNKNOWN;
  for (int32_t i = 0; i < executable->input_count; ++i) {
    if (executable->inputs[i].kind != HEDDLE_IO_TENSOR) {
      checkList(&inputs[i], &executable->inputs[i], withData, &problems);
      continue;
    }
    if (!checkShape(&inputs[i], &executable->inputs[i], &problems))
      continue;
    bindSymbols(module, inputs, i, symbols, &problems);
    if (withData)
      checkData(&inputs[i], &executable->inputs[i], &problems);
  }
  if (withData && !problems.length)
    checkBuffers(executable, inputs, &problems);
  return finish(module, &problems, "wrong inputs");
}

/* Whether the output lies where an input is that it may take the place of. */
static bool isInPlace(const heddle_io_t *io, const heddle_tensor_t *output, int32_t number,
                      const heddle_tensor_t *input, int64_t needed) {
  return io->shares == number && output->data == input->data && needed == bytesOf(input);
}

/* Bytes of the caller's buffer that a run may touch. */
static int64_t touchedBytes(const heddle_tensor_t *output, int64_t needed) {
  return needed < 0 || needed > output->bytes ? output->bytes : needed;
}

/* Memory of an input, or of an output as the caller gives it. */
typedef struct {
  uintptr_t begin, end;
  bool isOutput;
} range_t;

static int compareRanges(const void *first, const void *second) {
  const range_t *a = first, *b = second;
  return (a->begin > b->begin) - (a->begin < b->begin);
}

static void addRange(range_t *ranges, size_t *count, const void *data, int64_t bytes,
                     bool isOutput) {
  if (!data || bytes <= 0)
    return;
  range_t *range = &ranges[(*count)++];
  range->begin = (uintptr_t)data;
  range->end = range->begin + (uintptr_t)bytes;
  range->isOutput = isOutput;
}

/* Inputs, but for those that an output lies in the place of, and outputs. */
static size_t collectRanges(const heddle_executable_t *executable, const heddle_tensor_t *inputs,
                            const heddle_tensor_t *outputs, range_t *ranges, bool *isReplaced) {
  size_t count = 0;
  for (int32_t i = 0; i < executable->output_count; ++i) {
    int32_t input = executable->outputs[i].shares;
    addRange(ranges, &count, outputs[i].data, outputs[i].bytes, true);
    if (input >= 0 && outputs[i].data == inputs[input].data)
      isReplaced[input] = true;
  }
  for (int32_t i = 0; i < executable->input_count; ++i)
    if (!isReplaced[i])
      addRange(ranges, &count, inputs[i].data, bytesOf(&inputs[i]),
               isBuffer(executable->inputs, i));
  return count;
}

/* Whether all outputs stand apart from all else, or lie where an input is that they may take the
 * place of. Not so where that is unclear: a step of an optimiser has thousands of tensors, each of
 * which is compared with each of the others only then. */
static bool areApart(const heddle_executable_t *executable, const heddle_tensor_t *inputs,
                     const heddle_tensor_t *outputs) {
  size_t inputCount = (size_t)executable->input_count;
  size_t most = inputCount + (size_t)executable->output_count;
  range_t *ranges = malloc(most * sizeof *ranges + inputCount);
  if (!ranges)
    return false;
  bool *isReplaced = (bool *)(ranges + most);
  memset(isReplaced, 0, inputCount);
  size_t count = collectRanges(executable, inputs, outputs, ranges, isReplaced);
  qsort(ranges, count, sizeof *ranges, compareRanges);
  uintptr_t end = 0, outputEnd = 0; /* of those that begin before */
  bool apart = true;
  for (size_t i = 0; i < count && apart; ++i) {
    apart = ranges[i].begin >= (ranges[i].isOutput ? end : outputEnd);
    if (ranges[i].end > end)
      end = ranges[i].end;
    if (ranges[i].isOutput && ranges[i].end > outputEnd)
      outputEnd = ranges[i].end;
  }
  free(ranges);
  return apart;
}

/* So few tensors are compared with each other faster than they are sorted. */
enum { kFewTensors = 32 };

heddle_status_t *heddle_feeds_check_outputs(const heddle_module_t *module,
                                            const heddle_tensor_t *inputs,
                                            const heddle_tensor_t *outputs, size_t count,
                                            const int64_t *dims) {
  const heddle_executable_t *executable = module->executable;
  heddle_text_t problems = {0};
  if (count != (size_t)executable->output_count || (count && !outputs)) {
    heddle_text_add(&problems, "\n  %zu outputs given, but it has %d", outputs ? count : 0,
                    executable->output_count);
    return finish(module, &problems, "wrong outputs");
  }
  bool isApart = executable->input_count + executable->output_count > kFewTensors &&
                 areApart(executable, inputs, outputs);
  for (int32_t i = 0; i < executable->output_count; dims += executable->outputs[i++].rank) {
    const heddle_io_t *io = &executable->outputs[i];
    int64_t needed = heddle_tensor_bytes(io->dtype, io->rank, dims);
    heddle_tensor_t as = outputs[i];
    as.dtype = io->dtype;
    if (needed == HEDDLE_TOO_LARGE)
      heddle_text_add(&problems, "\n  output '%s' would be larger than an address space", io->name);
    if (!outputs[i].data)
      continue;
    if (io->kind != HEDDLE_IO_TENSOR || io->dtype == HEDDLE_STRING) {
      heddle_text_add(&problems,
                      "\n  output '%s': strings, sequences and tensors of any rank are allocated "
                      "by the run; pass NULL",
                      io->name);
      continue;
    }
    if (needed > outputs[i].bytes)
      heddle_text_add(&problems,
                      "\n  output '%s': its buffer has %" PRId64 " bytes, but it needs %" PRId64,
                      io->name, outputs[i].bytes, needed);
    if (!isAligned(&as))
      heddle_text_add(&problems, "\n  output '%s': its buffer is not aligned for %s", io->name,
                      heddle_dtype_name(io->dtype));
    bool liesIn = io->shares >= 0 && outputs[i].data == inputs[io->shares].data;
    if (isApart && (!liesIn || isInPlace(io, &outputs[i], io->shares, &inputs[io->shares], needed)))
      continue;
    int64_t touched = touchedBytes(&outputs[i], needed);
    for (int32_t j = 0; j < executable->input_count; ++j)
      if (!isInPlace(io, &outputs[i], j, &inputs[j], needed) &&
          overlaps(&outputs[i], touched, &inputs[j], bytesOf(&inputs[j])))
        heddle_text_add(&problems, "\n  output '%s': its buffer overlaps input '%s'", io->name,
                        executable->inputs[j].name);
    for (int32_t j = 0; j < i; ++j) /* as far as the other one says, which is enough to be safe */
      if (overlaps(&outputs[i], touched, &outputs[j], outputs[j].bytes))
        heddle_text_add(&problems, "\n  output '%s': its buffer overlaps output '%s'", io->name,
                        executable->outputs[j].name);
  }
  return finish(module, &problems, "wrong outputs");
}
