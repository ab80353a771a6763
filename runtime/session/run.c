/* run.c: one run of an executable, and the services that generated code calls meanwhile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/guard.h"
#include "runtime/base/results.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "runtime/library/images.h"
#include "runtime/routine/routine.h"
#include "runtime/session/blocks.h"
#include "runtime/session/feeds.h"
#include "runtime/session/lists.h"
#include "runtime/session/session.h"
#include "runtime/session/text.h"
#include "runtime/session/values.h"
#include "runtime/task/denormals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  STATUS_OUT_OF_MEMORY = -1,
  STATUS_SIZE_OVERFLOW = -2,
  STATUS_DEVICE = -3
}; /* of
heddle_call.status */

#define MUCH_MEMORY (INT64_C(1) << 30) /* from here on it is worth asking how much there is */

/* A block of `alloc`; the memory follows at 64 bytes. */
typedef struct temporary {
  struct temporary *next;
} temporary_t;

typedef struct run {
  heddle_session_t *session;
  heddle_workspace_t *workspace;
  const heddle_tensor_t *outputs; /* the caller's */
  temporary_t *temporaries;       /* atomic: pushed from any worker */
  heddle_tensor_t *made;  /* one per output: those that are not plain, as callers see them */
  int64_t temporaryBytes; /* atomic */
  int64_t arenaBytes;     /* the most so far */
  int64_t value, limit;   /* of the failure that came first */
  int64_t profiled;       /* the group that is being timed */
  int64_t profiledSince;  /* ns */
} run_t;

static int64_t nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void failOnDevice(heddle_call_t *call);

/* HEDDLE_SERVICE_PROFILE: groups begin and end on the thread of the run. */
static void profile(heddle_call_t *call, int64_t *frame) {
  run_t *run = call->runtime;
  heddle_session_t *session = run->session;
  if (!session->profile)
    return;
  if (run->workspace->streams && !heddle_streams_wait(run->workspace->streams))
    failOnDevice(call);
  int64_t now = nanoseconds();
  if (frame[0] < 0)
    session->profile(session->profile_data, run->profiled, now - run->profiledSince);
  run->profiled = frame[0];
  run->profiledSince = nanoseconds();
}

static void callLibrary(heddle_call_t *call, int64_t *frame);
static void areaOfDevice(heddle_call_t *call, int64_t *frame);
static void allocateOnDevice(heddle_call_t *call, int64_t *frame);
static void copyWithDevice(heddle_call_t *call, int64_t *frame);
static void launchOnDevice(heddle_call_t *call, int64_t *frame);

static void decodeImage(heddle_call_t *call, int64_t *frame) {
  heddle_image_t *image = NULL;
  int64_t height = 0, width = 0, format = frame[6];
  const void *bytes = (const void *)(intptr_t)frame[5];
  heddle_image_status_t status = heddle_image_open(bytes, frame[4], &image, &height, &width);
  if (status == HEDDLE_IMAGE_READ) {
    int64_t channels = format == HEDDLE_PIXELS_GRAY ? 1 : 3;
    uint8_t *pixels = call->alloc(call, height * width * channels);
    if (pixels)
      status = heddle_image_pixels(image, format, pixels);
    heddle_image_close(image);
    frame[0] = (int64_t)(intptr_t)pixels;
    frame[1] = height;
    frame[2] = width;
  }
  if (status != HEDDLE_IMAGE_READ)
    call->fail(call, frame[3] + (status == HEDDLE_IMAGE_DAMAGED), frame[4], 0);
}

static const heddle_service_fn kServices[HEDDLE_SERVICE_COUNT] = {
    [HEDDLE_SERVICE_LIST_MAKE] = heddle_service_list_make,
    [HEDDLE_SERVICE_LIST_INSERT] = heddle_service_list_insert,
    [HEDDLE_SERVICE_LIST_ERASE] = heddle_service_list_erase,
    [HEDDLE_SERVICE_LIST_AT] = heddle_service_list_at,
    [HEDDLE_SERVICE_LIST_LENGTH] = heddle_service_list_length,
    [HEDDLE_SERVICE_LIST_CONCAT] = heddle_service_list_concat,
    [HEDDLE_SERVICE_LIST_SPLIT] = heddle_service_list_split,
    [HEDDLE_SERVICE_LIST_CAST] = heddle_service_list_cast,
    [HEDDLE_SERVICE_LIST_RANK] = heddle_service_list_rank,
    [HEDDLE_SERVICE_STRING_CONCAT] = heddle_service_string_concat,
    [HEDDLE_SERVICE_STRING_SPLIT] = heddle_service_string_split,
    [HEDDLE_SERVICE_STRING_NORMALIZE] = heddle_service_string_normalize,
    [HEDDLE_SERVICE_STRING_MATCH] = heddle_service_string_match,
    [HEDDLE_SERVICE_STRING_CAST] = heddle_service_string_cast,
    [HEDDLE_SERVICE_PROFILE] = profile,
    [HEDDLE_SERVICE_LIBRARY] = callLibrary,
    [HEDDLE_SERVICE_IMAGE_DECODE] = decodeImage,
    [HEDDLE_SERVICE_CUSTOM] = heddle_service_custom,
    [HEDDLE_SERVICE_TOPK] = heddle_routine_topk,
    [HEDDLE_SERVICE_CUMSUM] = heddle_routine_cumsum,
    [HEDDLE_SERVICE_NONZERO] = heddle_routine_nonzero,
    [HEDDLE_SERVICE_UNIQUE] = heddle_routine_unique,
    [HEDDLE_SERVICE_SUPPRESS] = heddle_routine_suppress,
    [HEDDLE_SERVICE_FOREST] = heddle_routine_forest,
    [HEDDLE_SERVICE_FOURIER] = heddle_routine_fourier,
    [HEDDLE_SERVICE_DEVICE_AREA] = areaOfDevice,
    [HEDDLE_SERVICE_DEVICE_ALLOC] = allocateOnDevice,
    [HEDDLE_SERVICE_DEVICE_COPY] = copyWithDevice,
    [HEDDLE_SERVICE_DEVICE_LAUNCH] = launchOnDevice,
};

heddle_strings_t *heddle_run_strings(heddle_call_t *call) {
  return &((run_t *)call->runtime)->workspace->strings;
}

static void failWith(heddle_call_t *call, int32_t status, int64_t value, int64_t limit) {
  int32_t none = 0;
  if (!__atomic_compare_exchange_n(&call->status, &none, status, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    return;
  run_t *run = call->runtime;
  run->value = value;
  run->limit = limit;
}

static void reportFailure(heddle_call_t *call, int64_t message, int64_t value, int64_t limit) {
  failWith(call, (int32_t)(message + 1), value, limit);
}

/* A kernel's failure is the model's; the driver's has a status of its own. */
static void failOnDevice(heddle_call_t *call) {
  const run_t *run = call->runtime;
  heddle_device_failure_t failure = heddle_streams_failure(run->workspace->streams);
  if (failure.status)
    reportFailure(call, failure.status - 1, failure.value, failure.limit);
  else
    failWith(call, STATUS_DEVICE, 0, 0);
}

/* Services of devices: a run that has failed asks them for nothing more. */
static void askDevice(heddle_call_t *call, int64_t *frame,
                      bool (*ask)(heddle_streams_t *, int64_t *)) {
  const run_t *run = call->runtime;
  if (__atomic_load_n(&call->status, __ATOMIC_RELAXED) == 0 && !ask(run->workspace->streams, frame))
    failOnDevice(call);
}

static void areaOfDevice(heddle_call_t *call, int64_t *frame) {
  frame[0] = 0;
  askDevice(call, frame, heddle_streams_area);
}

static void allocateOnDevice(heddle_call_t *call, int64_t *frame) {
  frame[0] = 0;
  askDevice(call, frame, heddle_streams_allocate);
}

static void copyWithDevice(heddle_call_t *call, int64_t *frame) {
  askDevice(call, frame, heddle_streams_copy);
}

static void launchOnDevice(heddle_call_t *call, int64_t *frame) {
  askDevice(call, frame, heddle_streams_launch);
}

/* HEDDLE_SERVICE_LIBRARY: on the thread of the run, whose scratch no kernel uses meanwhile. */
static void callLibrary(heddle_call_t *call, int64_t *frame) {
  run_t *run = call->runtime;
  heddle_calls_t *calls = run->session->calls;
  heddle_block_t *scratch = &run->workspace->scratch;
  int32_t failure = 0;
  heddle_prepared_t *prepared = heddle_calls_prepare(calls, frame, &failure);
  int64_t bytes = prepared ? heddle_prepared_scratch(prepared) : 0;
  if (bytes && !heddle_workspace_grow(run->session, scratch, bytes))
    failWith(call, STATUS_OUT_OF_MEMORY, bytes, 0);
  else if (prepared) {
    heddle_unguard(scratch->data, bytes);
    failure = heddle_prepared_run(calls, prepared, frame, bytes ? scratch->data : NULL);
  }
  if (failure)
    reportFailure(call, frame[0], failure, 0);
  if (bytes > run->workspace->used_scratch_bytes)
    run->workspace->used_scratch_bytes = bytes;
  if (prepared)
    heddle_prepared_release(calls, prepared);
}

static void *allocate(heddle_call_t *call, int64_t bytes) {
  run_t *run = call->runtime;
  if (__atomic_load_n(&call->status, __ATOMIC_RELAXED) != 0) /* its sizes may mean nothing */
    return NULL;
  int64_t held = __atomic_add_fetch(&run->temporaryBytes, bytes, __ATOMIC_RELAXED);
  if (bytes >= 0 && held > MUCH_MEMORY && held > heddle_memory_physical()) {
    failWith(call, STATUS_OUT_OF_MEMORY, held, 0);
    return NULL;
  }
  temporary_t *block =
      bytes < 0 || bytes > INT64_MAX - 64 ? NULL : heddle_memory_allocate(bytes + 64);
  if (!block) {
    failWith(call, bytes < 0 ? STATUS_SIZE_OVERFLOW : STATUS_OUT_OF_MEMORY, bytes, 0);
    return NULL;
  }
  block->next = __atomic_load_n(&run->temporaries, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&run->temporaries, &block->next, block, true,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    ;
  heddle_guard(block + 1, 64 - (int64_t)sizeof *block);
  return (char *)block + 64;
}

/* The caller's buffer when it is large enough: the result then needs no copy. */
static void *allocateOutput(heddle_call_t *call, int64_t output, int64_t bytes) {
  run_t *run = call->runtime;
  if (__atomic_load_n(&call->status, __ATOMIC_RELAXED) != 0)
    return NULL;
  heddle_block_t *owned = &run->workspace->owned[output];
  bool isPlain = heddle_is_plain(&run->session->module->executable->outputs[output]);
  void *data = isPlain ? run->outputs[output].data : NULL;
  if (!data || bytes < 0 || bytes > run->outputs[output].bytes) {
    heddle_result_free(owned->data);
    data = owned->data = heddle_result_allocate(run->session->results, bytes);
    owned->bytes = bytes;
    if (!data)
      failWith(call, bytes < 0 ? STATUS_SIZE_OVERFLOW : STATUS_OUT_OF_MEMORY, bytes, 0);
  }
  call->outputs[output] = data;
  return data;
}

typedef struct chunked {
  heddle_kernel_fn kernel;
  const int64_t *args;
  int64_t tasks, chunks;
  uint8_t *scratch;
  int64_t scratchStride;
  bool keepsSubnormals;
} chunked_t;

static void runChunk(void *context, size_t index) {
  const chunked_t *launch = context;
  int64_t begin, end;
  heddle_pool_chunk(launch->tasks, launch->chunks, (int64_t)index, &begin, &end);
  uint64_t mode = heddle_denormals_keep(launch->keepsSubnormals);
  launch->kernel(launch->args, begin, end,
                 launch->scratch ? launch->scratch + (int64_t)index * launch->scratchStride : NULL);
  heddle_denormals_restore(mode);
}

/* Each worker has its part, and nothing after it. */
static void guardScratch(const heddle_block_t *scratch, int64_t parts, int64_t stride,
                         int64_t bytes) {
  heddle_guard(scratch->data, scratch->bytes);
  for (int64_t i = 0; i < parts; ++i)
    heddle_unguard((char *)scratch->data + i * stride, bytes);
}

static void launchKernel(heddle_call_t *call, heddle_kernel_fn kernel, const int64_t *args,
                         int64_t tasks, int64_t scratchBytes) {
  run_t *run = call->runtime;
  heddle_block_t *scratch = &run->workspace->scratch;
  if (tasks <= 0 || __atomic_load_n(&call->status, __ATOMIC_RELAXED) != 0)
    return;
  int64_t chunks = tasks < call->thread_count ? tasks : call->thread_count;
  int64_t stride = 0, total = 0;
  if (scratchBytes > 0) {
    if (scratchBytes > INT64_MAX - 63 - HEDDLE_GUARD_BYTES ||
        __builtin_mul_overflow(stride = (scratchBytes + HEDDLE_GUARD_BYTES + 63) & ~INT64_C(63),
                               chunks, &total)) {
      failWith(call, STATUS_SIZE_OVERFLOW, scratchBytes, 0);
      return;
    }
    if (!heddle_workspace_grow(run->session, scratch, total)) {
      failWith(call, STATUS_OUT_OF_MEMORY, total, 0);
      return;
    }
    if (total > run->workspace->used_scratch_bytes)
      run->workspace->used_scratch_bytes = total;
    guardScratch(scratch, chunks, stride, scratchBytes);
  }
  if (chunks == 1) { /* what becomes of denormals is said already, and nothing needs the pool */
    kernel(args, 0, tasks, total ? scratch->data : NULL);
    return;
  }
  chunked_t launch = {kernel,
                      args,
                      tasks,
                      chunks,
                      total ? scratch->data : NULL,
                      stride,
                      run->session->module->executable->keeps_subnormals != 0};
  heddle_pool_run(run->session->pool, runChunk, &launch, (size_t)chunks);
}

/* A message of the executable with its one or two %lld filled in. Not printf: the text comes from
 * a file. */
static void addMessage(heddle_text_t *text, const char *format, int64_t value, int64_t limit) {
  int64_t values[2] = {value, limit};
  for (int used = 0; *format;) {
    size_t plain = strcspn(format, "%");
    heddle_text_add(text, "%.*s", (int)plain, format);
    format += plain;
    if (strncmp(format, "%lld", 4) == 0 && used < 2) {
      heddle_text_add(text, "%" PRId64, values[used++]);
      format += 4;
    } else if (*format) {
      heddle_text_add(text, "%%");
      format += format[1] == '%' ? 2 : 1;
    }
  }
}

static heddle_status_t *failureStatus(const heddle_executable_t *executable, int32_t status,
                                      int64_t value, int64_t limit) {
  const char *model = executable->model ? executable->model : "";
  if (status == STATUS_OUT_OF_MEMORY)
    return heddle_status_make(HEDDLE_LIMIT,
                              "model '%s': out of memory: %" PRId64 " bytes for a run; use smaller "
                              "inputs or fewer runs at once",
                              model, value);
  if (status == STATUS_SIZE_OVERFLOW)
    return heddle_status_make(
        HEDDLE_LIMIT, "model '%s': a tensor of these inputs is larger than an address space",
        model);
  if (status < 1 || status > executable->message_count)
    return heddle_status_make(HEDDLE_INTERNAL,
                              "internal error: model '%s': failure %d of a run, but the artefact "
                              "knows 1 to %d",
                              model, status, executable->message_count);
  heddle_text_t text = {0};
  addMessage(&text, executable->messages[status - 1], value, limit);
  heddle_status_t *made =
      heddle_status_make(HEDDLE_USAGE, "model '%s': %s", model, text.data ? text.data : "");
  heddle_text_free(&text);
  return made;
}

heddle_status_t *heddle_run_sizes(const heddle_module_t *module, const int64_t *symbols,
                                  int64_t *outputDims, int64_t *arenaBytes) {
  const heddle_executable_t *executable = module->executable;
  int64_t values[2] = {0, 0};
  int32_t failed = executable->sizes(symbols, arenaBytes, outputDims, values);
  if (failed)
    return failureStatus(executable, failed, values[0], values[1]);
  bool isValid = true;
  for (int64_t i = 0; i <= executable->device_count; ++i)
    isValid &= arenaBytes[i] >= 0;
  for (int64_t i = 0; i < module->output_dims_count; ++i)
    isValid &= outputDims[i] >= HEDDLE_DYNAMIC;
  return isValid ? NULL : failureStatus(executable, STATUS_SIZE_OVERFLOW, 0, 0);
}

/* Points the call at the caller's buffers, or at new ones where sizes are known. */
static heddle_status_t *prepareOutputs(heddle_session_t *session, heddle_workspace_t *workspace,
                                       const heddle_tensor_t *outputs) {
  const heddle_executable_t *executable = session->module->executable;
  const int64_t *dims = workspace->output_dims;
  for (int32_t i = 0; i < executable->output_count; dims += executable->outputs[i++].rank) {
    int64_t bytes = heddle_io_bytes(&executable->outputs[i], dims);
    void *data = heddle_is_plain(&executable->outputs[i]) ? outputs[i].data : NULL;
    workspace->outputs[i] = bytes == HEDDLE_UNKNOWN ? NULL : data;
    if (bytes == HEDDLE_UNKNOWN || data)
      continue;
    workspace->outputs[i] = heddle_result_allocate(session->results, bytes);
    workspace->owned[i] = (heddle_block_t){workspace->outputs[i], bytes};
    if (!workspace->outputs[i])
      return failureStatus(executable, STATUS_OUT_OF_MEMORY, bytes, 0);
  }
  return NULL;
}

/* After the run all sizes are known: do they fit where the data went, and the caller's buffer? */
static heddle_status_t *checkResults(const heddle_executable_t *executable,
                                     const heddle_workspace_t *workspace,
                                     const heddle_tensor_t *outputs) {
  const int64_t *dims = workspace->output_dims;
  for (int32_t i = 0; i < executable->output_count; dims += executable->outputs[i++].rank) {
    const heddle_io_t *io = &executable->outputs[i];
    int64_t bytes = heddle_io_bytes(io, dims);
    const heddle_block_t *owned = &workspace->owned[i];
    if (bytes < 0 || (bytes > 0 && !workspace->outputs[i]) || (owned->data && bytes > owned->bytes))
      return heddle_status_make(HEDDLE_INTERNAL,
                                "internal error: model '%s': output '%s' has %" PRId64 " bytes "
                                "after the run, but %" PRId64 " were allocated",
                                executable->model, io->name, bytes, owned->bytes);
    if (io->kind == HEDDLE_IO_TENSOR)
      bytes = heddle_tensor_bytes(io->dtype, io->rank, dims);
    if (outputs[i].data && bytes > outputs[i].bytes)
      return heddle_status_make(HEDDLE_USAGE,
                                "model '%s': output '%s': its buffer has %" PRId64 " bytes, but it "
                                "needs %" PRId64 "; pass NULL to have it allocated",
                                executable->model, io->name, outputs[i].bytes, bytes);
  }
  return NULL;
}

/* What is not plain, as callers see it. */
static heddle_status_t *makeOutputs(const heddle_executable_t *executable, run_t *run) {
  heddle_workspace_t *workspace = run->workspace;
  const int64_t *dims = workspace->output_dims;
  for (int32_t i = 0; i < executable->output_count; dims += executable->outputs[i++].rank) {
    if (heddle_is_plain(&executable->outputs[i]))
      continue;
    if (!run->made)
      run->made = calloc((size_t)executable->output_count, sizeof *run->made);
    if (!run->made || !heddle_value_give(&workspace->strings, &executable->outputs[i],
                                         workspace->outputs[i], dims, &run->made[i]))
      return failureStatus(executable, STATUS_OUT_OF_MEMORY,
                           heddle_io_bytes(&executable->outputs[i], dims), 0);
  }
  return NULL;
}

/* Cannot fail. What callers release of it is kept for as many runs as there were at once. */
static void handOver(const heddle_executable_t *executable, run_t *run, heddle_tensor_t *outputs) {
  heddle_workspace_t *workspace = run->workspace;
  const int64_t *dims = workspace->output_dims;
  int64_t given = 0;
  for (int32_t i = 0; i < executable->output_count; dims += executable->outputs[i++].rank) {
    heddle_tensor_t *output = &outputs[i];
    heddle_block_t *owned = &workspace->owned[i];
    if (run->made && (run->made[i].owner || executable->outputs[i].kind != HEDDLE_IO_TENSOR)) {
      *output = run->made[i];
      run->made[i].owner = NULL;
      continue;
    }
    output->dtype = executable->outputs[i].dtype;
    output->rank = executable->outputs[i].rank;
    memcpy(output->dims, dims, (size_t)output->rank * sizeof *dims);
    int64_t bytes = heddle_tensor_bytes(output->dtype, output->rank, dims);
    if (!output->data) {
      output->data = output->owner = owned->data;
      output->bytes = bytes;
      given += owned->bytes;
      *owned = (heddle_block_t){0};
    } else if (owned->data) {
      memcpy(output->data, owned->data, (size_t)bytes);
    }
  }
  if (given)
    heddle_results_keep(run->session->results,
                        given * __atomic_load_n(&run->session->workspaces, __ATOMIC_RELAXED));
}

static heddle_call_t callOf(run_t *run) {
  heddle_session_t *session = run->session;
  heddle_workspace_t *workspace = run->workspace;
  return (heddle_call_t){
      .inputs = workspace->inputs,
      .outputs = workspace->outputs,
      .symbols = workspace->symbols,
      .output_dims = workspace->output_dims,
      .weights = session->module->executable->weights,
      .thread_count = heddle_pool_threads(session->pool),
      .seed = __atomic_fetch_add(&session->seed, 1, __ATOMIC_RELAXED),
      .launch = launchKernel,
      .alloc = allocate,
      .alloc_output = allocateOutput,
      .fail = reportFailure,
      .services = kServices,
      .runtime = run,
  };
}

/* The inputs as generated code reads them, and the sizes that some of them are. */
static heddle_status_t *takeInputs(heddle_call_t *call, const heddle_tensor_t *inputs) {
  run_t *run = call->runtime;
  const heddle_executable_t *executable = run->session->module->executable;
  heddle_workspace_t *workspace = run->workspace;
  for (int32_t i = 0; i < executable->input_count; ++i)
    workspace->inputs[i] =
        heddle_is_plain(&executable->inputs[i])
            ? inputs[i].data
            : heddle_value_take(call, &workspace->strings, &executable->inputs[i], &inputs[i]);
  if (!call->status && executable->bind)
    executable->bind(call);
  return call->status ? failureStatus(executable, call->status, run->value, run->limit) : NULL;
}

/* Runs once with arenas of workspace->arena_bytes. */
static heddle_status_t *execute(heddle_call_t *call) {
  run_t *run = call->runtime;
  heddle_session_t *session = run->session;
  const heddle_executable_t *executable = session->module->executable;
  heddle_devices_t *devices = session->module->devices;
  heddle_workspace_t *workspace = run->workspace;
  int64_t arenaBytes = workspace->arena_bytes[0];
  if (!heddle_workspace_grow(session, &workspace->arena, arenaBytes))
    return failureStatus(executable, STATUS_OUT_OF_MEMORY, arenaBytes, 0);
  call->arena = workspace->arena.data;
  heddle_status_t *status =
      devices ? heddle_streams_begin(devices, workspace->arena_bytes + 1, &workspace->streams)
              : NULL;
  if (status)
    return status;
  uint64_t mode = heddle_denormals_keep(executable->keeps_subnormals != 0);
  int32_t returned = executable->run(call);
  heddle_denormals_restore(mode);
  if (devices && !heddle_streams_end(workspace->streams))
    failOnDevice(call);
  if (arenaBytes > run->arenaBytes)
    run->arenaBytes = arenaBytes;
  int32_t failed = call->status ? call->status : returned;
  if (failed == STATUS_DEVICE && devices)
    status = heddle_streams_take_status(workspace->streams);
  if (status)
    return status;
  return failed ? failureStatus(executable, failed, run->value, run->limit) : NULL;
}

static heddle_status_t *executeBlocks(heddle_call_t *call, const heddle_tensor_t *inputs,
                                      int64_t count) {
  run_t *run = call->runtime;
  const heddle_module_t *module = run->session->module;
  heddle_blocks_t blocks =
      heddle_blocks_of(call, module->executable, run->workspace, inputs, count);
  heddle_status_t *status = NULL;
  while (!status && heddle_blocks_next(&blocks)) {
    status =
        heddle_run_sizes(module, call->symbols, call->output_dims, run->workspace->arena_bytes);
    if (!status)
      status = execute(call);
  }
  if (!status && call->status) /* the lengths are others than before */
    status = failureStatus(module->executable, call->status, run->value, run->limit);
  return status;
}

static void tellMemory(const run_t *run) {
  heddle_session_t *session = run->session;
  int64_t deviceBytes = heddle_streams_bytes(run->workspace->streams);
  pthread_mutex_lock(&session->mutex);
  session->memory.device_bytes += deviceBytes - run->workspace->device_bytes;
  run->workspace->device_bytes = deviceBytes;
  session->memory.arena_bytes = run->arenaBytes;
  session->memory.scratch_bytes = run->workspace->used_scratch_bytes;
  pthread_mutex_unlock(&session->mutex);
}

heddle_status_t *heddle_run(heddle_session_t *session, heddle_workspace_t *workspace,
                            const heddle_tensor_t *inputs, heddle_tensor_t *outputs,
                            size_t outputCount) {
  const heddle_executable_t *executable = session->module->executable;
  run_t run = {.session = session, .workspace = workspace, .outputs = outputs};
  heddle_call_t call = callOf(&run);
  heddle_status_t *status = takeInputs(&call, inputs);
  if (!status)
    status = heddle_run_sizes(session->module, workspace->symbols, workspace->output_dims,
                              workspace->arena_bytes);
  if (!status)
    status = heddle_feeds_check_outputs(session->module, inputs, outputs, outputCount,
                                        workspace->output_dims);
  if (!status)
    status = prepareOutputs(session, workspace, outputs);
  if (!status) {
    int64_t blocks = heddle_blocks_count(&call, executable, workspace->arena_bytes[0]);
    status = blocks > 1 ? executeBlocks(&call, inputs, blocks) : execute(&call);
    tellMemory(&run);
  }
  if (!status)
    status = checkResults(executable, workspace, outputs);
  if (!status)
    status = makeOutputs(executable, &run);
  if (!status)
    handOver(executable, &run, outputs);
  for (int32_t i = 0; run.made && i < executable->output_count; ++i)
    heddle_tensor_release(&run.made[i]);
  free(run.made);
  heddle_strings_reset(&workspace->strings);
  for (int32_t i = 0; i < executable->output_count; ++i) {
    heddle_result_free(workspace->owned[i].data);
    workspace->owned[i] = (heddle_block_t){0};
  }
  while (run.temporaries) {
    temporary_t *next = run.temporaries->next;
    free(run.temporaries);
    run.temporaries = next;
  }
  return status;
}
