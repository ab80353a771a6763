/* module.c: check an executable's description once, so that sessions can trust it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/executable/module.h"

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/executable/features.h"
#include "runtime/executable/variants.h"
#include "runtime/library/calls.h"

#include <stdlib.h>
#include <string.h>

/* One input or output; `symbols` is NULL for an output, whose dims may be derived. */
static void checkValue(const heddle_executable_t *executable, const heddle_io_t *value,
                       bool *isBound, heddle_text_t *problems) {
  if (!value->name || !heddle_dtype_bits(value->dtype) || value->rank < 0 ||
      value->rank > HEDDLE_MAX_RANK || (value->rank > 0 && !value->dims)) {
    heddle_text_add(problems, "; '%s' has dtype %d and rank %d (largest: %d)",
                    value->name ? value->name : "", value->dtype, value->rank, HEDDLE_MAX_RANK);
    return;
  }
  if (value->encoding != HEDDLE_ENCODING_DENSE && (value->label_count < 0 || !value->labels))
    heddle_text_add(problems, "; '%s' has no labels", value->name);
  if (value->kind < HEDDLE_IO_TENSOR || value->kind > HEDDLE_IO_ANY_RANK ||
      (value->kind != HEDDLE_IO_TENSOR &&
       (value->rank != 0 || value->tensor_rank < -1 || value->tensor_rank > HEDDLE_MAX_RANK)))
    heddle_text_add(problems, "; '%s' is a list of kind %d and rank %d", value->name, value->kind,
                    value->tensor_rank);
  for (int32_t i = 0; i < value->rank; ++i) {
    const heddle_io_dim_t *dim = &value->dims[i];
    bool isSymbol = dim->symbol >= 0 && dim->symbol < executable->symbol_count;
    if (!dim->text || dim->value < HEDDLE_DYNAMIC || (dim->symbol >= 0 && !isSymbol) ||
        (isBound && dim->value == HEDDLE_DYNAMIC && !isSymbol))
      heddle_text_add(problems, "; dim %d of '%s' is neither a size nor a symbol", i, value->name);
    else if (isBound && isSymbol)
      isBound[dim->symbol] = true;
  }
}

static void checkOutput(const heddle_executable_t *executable, const heddle_io_t *output,
                        heddle_text_t *problems) {
  checkValue(executable, output, NULL, problems);
  if (output->shares == -1)
    return;
  bool isInput = output->shares >= 0 && output->shares < executable->input_count;
  const heddle_io_t *input = isInput ? &executable->inputs[output->shares] : NULL;
  if (!input || input->dtype != output->dtype || input->rank != output->rank ||
      input->kind != HEDDLE_IO_TENSOR || output->kind != HEDDLE_IO_TENSOR)
    heddle_text_add(problems, "; output '%s' cannot have the memory of input %d", output->name,
                    output->shares);
}

static void checkExecutable(const heddle_executable_t *executable, heddle_text_t *problems) {
  if (executable->input_count < 0 || executable->output_count < 0 || executable->symbol_count < 0 ||
      executable->message_count < 0 || !executable->sizes || !executable->run ||
      (executable->input_count && !executable->inputs) ||
      (executable->output_count && !executable->outputs) ||
      (executable->symbol_count && !executable->symbols) ||
      (executable->message_count && !executable->messages) || executable->string_count < 0 ||
      (executable->string_count && !executable->strings) || executable->call_count < 0 ||
      (executable->call_count && !executable->calls)) {
    heddle_text_add(problems, "; a count is negative, or a table or function is missing");
    return;
  }
  heddle_devices_check(executable, problems);
  bool isSymbol = executable->row_symbol >= 0 && executable->row_work >= 0 &&
                  executable->row_symbol < executable->symbol_count &&
                  executable->row_work < executable->symbol_count;
  if (executable->row_block < 0 || (executable->row_block && (!isSymbol || !executable->bind)))
    heddle_text_add(problems, "; blocks of rows without a symbol for rows or work");
  bool *isBound = calloc((size_t)executable->symbol_count + 1, sizeof *isBound);
  for (int32_t i = 0; isBound && i < executable->input_count; ++i) {
    const heddle_io_t *input = &executable->inputs[i];
    checkValue(executable, input, isBound, problems);
    if (input->shares != -1 && (input->shares != i || input->kind != HEDDLE_IO_TENSOR))
      heddle_text_add(problems, "; input '%s' cannot have the memory of input %d", input->name,
                      input->shares);
  }
  for (int32_t i = 0; i < executable->output_count; ++i)
    checkOutput(executable, &executable->outputs[i], problems);
  for (int32_t i = 0; isBound && i < executable->symbol_count; ++i)
    if (!isBound[i] && !executable->bind)
      heddle_text_add(problems, "; symbol '%s' is the size of no input", executable->symbols[i]);
  problems->lost |= !isBound;
  free(isBound);
}

static void describe(heddle_module_t *module) {
  const heddle_executable_t *executable = module->executable;
  heddle_value_t *value = module->values;
  heddle_dim_t *dim = module->dims;
  for (int32_t i = 0; i < executable->input_count + executable->output_count; ++i, ++value) {
    const heddle_io_t *io = i < executable->input_count
                                ? &executable->inputs[i]
                                : &executable->outputs[i - executable->input_count];
    *value = (heddle_value_t){io->name,        io->dtype,  io->rank, dim,       io->encoding,
                              io->label_count, io->labels, io->kind, io->shares};
    if (io->kind != HEDDLE_IO_TENSOR) {
      value->rank = io->tensor_rank;
      value->dims = NULL;
    }
    for (int32_t j = 0; j < io->rank; ++j)
      *dim++ = (heddle_dim_t){io->dims[j].value, io->dims[j].text};
  }
}

static heddle_status_t *createChecked(const heddle_executable_t *executable,
                                      heddle_module_t **result) {
  size_t values = (size_t)executable->input_count + (size_t)executable->output_count, dims = 0;
  int64_t outputDims = 0;
  for (int32_t i = 0; i < executable->input_count; ++i)
    dims += (size_t)executable->inputs[i].rank;
  for (int32_t i = 0; i < executable->output_count; ++i)
    outputDims += executable->outputs[i].rank;
  dims += (size_t)outputDims;
  heddle_module_t *module =
      calloc(1, sizeof *module + values * sizeof(heddle_value_t) + dims * sizeof(heddle_dim_t));
  if (!module)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for model '%s'", executable->model);
  module->executable = executable;
  module->users = 1;
  module->output_dims_count = outputDims;
  module->values = (heddle_value_t *)(module + 1);
  module->dims = (heddle_dim_t *)(module->values + values);
  describe(module);
  *result = module;
  return NULL;
}

static heddle_status_t *checkVersion(const heddle_executable_t *executable, const char *origin) {
  if (executable->magic != HEDDLE_EXECUTABLE_MAGIC)
    return heddle_status_make(HEDDLE_REFUSED, "'%s' is not a compiled model: wrong magic number",
                              origin ? origin : "executable");
  if (executable->abi_version != HEDDLE_ABI_VERSION)
    return heddle_status_make(HEDDLE_REFUSED,
                              "'%s' was compiled by another version of Heddle (artefact version "
                              "%u, this runtime reads %u); compile the model again",
                              origin ? origin : "executable", executable->abi_version,
                              HEDDLE_ABI_VERSION);
  return NULL;
}

static heddle_status_t *damaged(const char *origin, const heddle_text_t *problems) {
  return heddle_status_make(HEDDLE_REFUSED, "'%s' is a damaged artefact%s", origin,
                            problems->data ? problems->data : "");
}

/* Replaces an executable that has forms for several machines by the form for this one. */
static heddle_status_t *chooseVariant(const heddle_executable_t **executable, const char *origin) {
  enum { MOST_VARIANTS = 256 };
  const heddle_executable_t *const *forms = (*executable)->variants;
  int64_t count = (*executable)->variant_count, chosen = 0;
  if (count == 0)
    return NULL;
  if (count < 0 || count > MOST_VARIANTS || !forms)
    return heddle_status_make(HEDDLE_REFUSED, "'%s' is a damaged artefact: it has %lld variants",
                              origin, (long long)count);
  heddle_variant_t variants[MOST_VARIANTS];
  for (int64_t i = 0; i < count; ++i) {
    heddle_status_t *status = forms[i] ? checkVersion(forms[i], origin)
                                       : heddle_status_make(HEDDLE_REFUSED,
                                                            "'%s' is a damaged artefact: variant "
                                                            "%lld is missing",
                                                            origin, (long long)i);
    heddle_text_t problems = {0};
    if (!status)
      heddle_devices_check(forms[i], &problems);
    if (problems.length)
      status = damaged(origin, &problems);
    heddle_text_free(&problems);
    if (status)
      return status;
    variants[i] = (heddle_variant_t){forms[i]->target ? forms[i]->target : "?",
                                     forms[i]->features ? forms[i]->features : "", forms[i]};
  }
  heddle_status_t *status = heddle_variants_choose(variants, count, origin, &chosen);
  if (!status)
    *executable = forms[chosen];
  return status;
}

static heddle_status_t *checkDevices(const heddle_executable_t *executable, const char *origin) {
  heddle_text_t missing = {0};
  heddle_devices_missing(executable, &missing);
  heddle_status_t *status =
      missing.length == 0
          ? NULL
          : heddle_status_make(
                HEDDLE_REFUSED, "'%s' is compiled for '%s' and %s; compile it with --target host",
                origin, executable->devices[0].space, missing.data ? missing.data : "?");
  heddle_text_free(&missing);
  return status;
}

heddle_status_t *heddle_module_create(const heddle_executable_t *executable, const char *origin,
                                      void (*release)(void *data), void *data,
                                      heddle_module_t **result) {
  if (!executable || !result)
    return heddle_status_make(HEDDLE_USAGE, "a module needs an executable and a place, found NULL");
  heddle_status_t *status = checkVersion(executable, origin);
  if (!status && !origin)
    origin = executable->model ? executable->model : "executable";
  if (!status)
    status = chooseVariant(&executable, origin);
  if (status)
    return status;
  heddle_module_t *module = NULL;
  heddle_text_t text = {0};
  heddle_features_missing(executable->features ? executable->features : "", &text);
  if (text.length) {
    status = heddle_status_make(HEDDLE_REFUSED,
                                "'%s' was compiled for '%s' and needs CPU features that this "
                                "machine lacks: %s; compile the model for this machine",
                                origin, executable->target ? executable->target : "?",
                                text.data ? text.data : "?");
  } else {
    checkExecutable(executable, &text);
    if (text.length)
      status = damaged(origin, &text);
    else
      status = heddle_calls_check(executable, origin);
  }
  if (!status && text.lost)
    status = heddle_status_make(HEDDLE_LIMIT, "out of memory while checking '%s'", origin);
  heddle_text_free(&text);
  if (!status)
    status = checkDevices(executable, origin);
  if (!status)
    status = createChecked(executable, &module);
  if (status)
    return status;
  if (executable->device_count)
    status = heddle_devices_open(executable, &module->devices);
  if (status) {
    heddle_module_destroy(module);
    return status;
  }
  module->release = release;
  module->data = data;
  *result = module;
  return NULL;
}

heddle_status_t *heddle_module_from_executable(const heddle_executable_t *executable,
                                               void (*release)(void *data), void *data,
                                               heddle_module_t **module) {
  return heddle_module_create(executable, NULL, release, data, module);
}

void heddle_module_retain(heddle_module_t *module) {
  __atomic_add_fetch(&module->users, 1, __ATOMIC_RELAXED);
}

void heddle_module_destroy(heddle_module_t *module) {
  if (!module || __atomic_sub_fetch(&module->users, 1, __ATOMIC_ACQ_REL) > 0)
    return;
  heddle_devices_close(module->devices);
  if (module->release)
    module->release(module->data);
  free(module);
}

heddle_module_info_t heddle_module_info(const heddle_module_t *module) {
  const heddle_executable_t *executable = module->executable;
  return (heddle_module_info_t){
      .model = executable->model ? executable->model : "",
      .producer = executable->producer ? executable->producer : "",
      .target = executable->target ? executable->target : "",
      .features = executable->features ? executable->features : "",
      .weights_bytes = executable->weights_bytes,
      .flops = executable->flops,
  };
}

size_t heddle_module_input_count(const heddle_module_t *module) {
  return (size_t)module->executable->input_count;
}

size_t heddle_module_output_count(const heddle_module_t *module) {
  return (size_t)module->executable->output_count;
}

const heddle_value_t *heddle_module_input(const heddle_module_t *module, size_t index) {
  return index < heddle_module_input_count(module) ? &module->values[index] : NULL;
}

const heddle_value_t *heddle_module_output(const heddle_module_t *module, size_t index) {
  return index < heddle_module_output_count(module)
             ? &module->values[heddle_module_input_count(module) + index]
             : NULL;
}
