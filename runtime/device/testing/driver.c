/* driver.c: a driver for tests, whose device is the host: kernels.c runs as it is, a block's
 * threads one after the other, or beside each other where they wait for one another.
 *
 * It does what it is asked as late as it may: a stream's work when something waits for the stream.
 * Memory is malloc's, for sanitizers to watch. HEDDLE_TEST_DRIVER sets "chip=90,driver=12000,
 * devices=1,fail=FUNCTION:CALL:ERROR". SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

enum { NO_SUCH_FUNCTION = 500, BAD_PTX = 218, SHARED_BYTES = 232448, MOST_THREADS = 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int chip = 90, version = 12000, devices = 1;
static char failing[64];                     /* a function */
static int failingCall, failingError, calls; /* of it */
static CUresult lost;                        /* what all later calls return, or 0 */
static int64_t launches, allocations, live;

/* Threads of kernels. */
static _Thread_local unsigned threadIndex, threads, blockIndex, blocks;
static _Thread_local float *shared;
static _Thread_local pthread_barrier_t *barrier;

#define KERNEL static void
#define GLOBAL
#define tile shared
#define __nvvm_read_ptx_sreg_tid_x() threadIndex
#define __nvvm_read_ptx_sreg_ntid_x() threads
#define __nvvm_read_ptx_sreg_ctaid_x() blockIndex
#define __nvvm_read_ptx_sreg_nctaid_x() blocks
#define __syncthreads() pthread_barrier_wait(barrier)
#include "runtime/device/testing/kernels.c"

typedef struct launch {
  int64_t words[8], tasks, scratch, bytes;
  unsigned blocks, threads, sharedBytes;
} launch_t;

#define RUNS(name)                                                                                 \
  static void run_##name(const launch_t *launch) {                                                 \
    name##_words_t words;                                                                          \
    memcpy(&words, launch->words, sizeof words);                                                   \
    name(words, launch->tasks, launch->scratch, launch->bytes);                                    \
  }
RUNS(shift)
RUNS(check)
RUNS(twice)
RUNS(mirror)

typedef struct CUfunc_st {
  const char *name;
  void (*run)(const launch_t *launch);
  size_t wordBytes;
  bool waits; /* for other threads of the block */
} function_t;

static function_t functions[] = {{"shift", run_shift, sizeof(shift_words_t), false},
                                 {"check", run_check, sizeof(check_words_t), false},
                                 {"twice", run_twice, sizeof(twice_words_t), false},
                                 {"mirror", run_mirror, sizeof(mirror_words_t), true}};

/* Work of a stream: a kernel, or a copy, from nowhere for zeros. */
typedef struct work {
  struct work *next;
  void *target;
  const void *source;
  size_t bytes;
  const function_t *function;
  launch_t launch;
} work_t;

typedef struct CUstream_st {
  work_t *first, **end;
} stream_t;

static stream_t nullStream = {NULL, &nullStream.first};

static void readSettings(void) {
  const char *text = getenv("HEDDLE_TEST_DRIVER");
  for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL) {
    sscanf(text, "chip=%d", &chip);
    sscanf(text, "driver=%d", &version);
    sscanf(text, "devices=%d", &devices);
    sscanf(text, "fail=%63[^:]:%d:%d", failing, &failingCall, &failingError);
  }
}

/* Takes the mutex. The error to return, if any. */
static CUresult enter(const char *function, bool usesContext) {
  pthread_once(&once, readSettings);
  pthread_mutex_lock(&mutex);
  bool fails = strcmp(function, failing) == 0 && ++calls == failingCall;
  if (fails && failingError >= CUDA_ERROR_ILLEGAL_ADDRESS)
    lost = failingError;
  return fails ? failingError : usesContext ? lost : 0;
}

static CUresult leave(CUresult error) {
  pthread_mutex_unlock(&mutex);
  return error;
}

#define BEGIN(usesContext)                                                                         \
  CUresult error = enter(__func__, usesContext);                                                   \
  if (error)                                                                                       \
  return leave(error)
/* A function of one statement that is done where it does not fail. */
#define DRIVER(name, parameters, usesContext, ...)                                                 \
  CUresult name parameters {                                                                       \
    BEGIN(usesContext);                                                                            \
    __VA_ARGS__;                                                                                   \
    return leave(0);                                                                               \
  }

/* A function that releases something, and does so even where it fails. */
#define RELEASES(name, parameters, ...)                                                            \
  CUresult name parameters {                                                                       \
    CUresult error = enter(__func__, false);                                                       \
    __VA_ARGS__;                                                                                   \
    return leave(error);                                                                           \
  }

typedef struct thread {
  const work_t *work;
  unsigned thread, block;
  float *shared;
  pthread_barrier_t *barrier;
} thread_t;

static void *runThread(void *data) {
  const thread_t *self = data;
  threadIndex = self->thread;
  threads = self->work->launch.threads;
  blockIndex = self->block;
  blocks = self->work->launch.blocks;
  shared = self->shared;
  barrier = self->barrier;
  self->work->function->run(&self->work->launch);
  return NULL;
}

static void runBlock(const work_t *work, unsigned block) {
  pthread_barrier_t waiting;
  pthread_t handles[MOST_THREADS];
  thread_t all[MOST_THREADS];
  unsigned count = work->launch.threads;
  float *memory = malloc(work->launch.sharedBytes + 1);
  pthread_barrier_init(&waiting, NULL, count);
  for (unsigned i = 0; i < count; ++i) {
    all[i] = (thread_t){work, i, block, memory, &waiting};
    if (!work->function->waits)
      runThread(&all[i]);
    else if (pthread_create(&handles[i], NULL, runThread, &all[i]))
      abort();
  }
  for (unsigned i = 0; work->function->waits && i < count; ++i)
    pthread_join(handles[i], NULL);
  pthread_barrier_destroy(&waiting);
  free(memory);
}

static void carryOut(stream_t *stream) {
  while (stream->first) {
    work_t *work = stream->first;
    stream->first = work->next;
    for (unsigned i = 0; work->function && i < work->launch.blocks; ++i)
      runBlock(work, i);
    if (work->source)
      memcpy(work->target, work->source, work->bytes);
    else if (work->bytes)
      memset(work->target, 0, work->bytes);
    free(work);
  }
  stream->end = &stream->first;
}

static work_t *add(stream_t *stream, CUdeviceptr target, const void *source, size_t bytes) {
  stream = stream ? stream : &nullStream;
  work_t *work = calloc(1, sizeof *work);
  work->target = (void *)(uintptr_t)target;
  work->source = source;
  work->bytes = bytes;
  *stream->end = work;
  stream->end = &work->next;
  return work;
}

/* The slot of memory that is not released yet, or a free one; known here, so that what a test
 * leaves on purpose is no leak of the host's. */
static void **slotOf(const void *memory) {
  enum { SLOTS = 4096 };
  static void *slots[SLOTS];
  for (size_t i = 0; i < SLOTS; ++i)
    if (slots[i] == memory)
      return &slots[i];
  abort();
}

static void *make(size_t bytes) {
  ++live;
  return *slotOf(NULL) = memset(malloc(bytes), 0xcc, bytes);
}
static void drop(void *memory) {
  --live;
  *slotOf(memory) = NULL;
  free(memory);
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  static _Thread_local char text[32];
  snprintf(text, sizeof text, "CUDA_ERROR_%d", error);
  *name = text;
  return 0;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error";
  return 0;
}
DRIVER(cuInit, (unsigned flags), false, (void)flags)
DRIVER(cuDriverGetVersion, (int *result), false, *result = version)
DRIVER(cuDeviceGetCount, (int *count), false, *count = devices)
DRIVER(cuDeviceGet, (CUdevice * device, int ordinal), false, *device = ordinal)
DRIVER(cuDeviceGetName, (char *name, int bytes, CUdevice device), false,
       snprintf(name, (size_t)bytes, "device %d", device))
DRIVER(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device), false,
       *value = attribute == CU_DEVICE_COMPUTE_CAPABILITY_MAJOR   ? chip / 10
                : attribute == CU_DEVICE_COMPUTE_CAPABILITY_MINOR ? chip % 10
                : attribute == CU_DEVICE_MULTIPROCESSOR_COUNT     ? 2 + 0 * device
                                                                  : SHARED_BYTES)
DRIVER(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), false,
       *context = (CUcontext)(uintptr_t)(device + 1);
       ++live)
RELEASES(cuDevicePrimaryCtxRelease_v2, (CUdevice device), live -= device >= 0)
DRIVER(cuCtxPushCurrent_v2, (CUcontext context), false, live += context != NULL)
RELEASES(cuCtxPopCurrent_v2, (CUcontext * context), *context = NULL; --live)

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                            void **values) {
  BEGIN(true);
  if (!strstr(image, ".entry")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == CU_JIT_ERROR_LOG)
        strcpy(values[i], "no kernels in it");
    return leave(BAD_PTX);
  }
  *module = make(1);
  return leave(0);
}
RELEASES(cuModuleUnload, (CUmodule module), drop(module))

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  BEGIN(true);
  for (size_t i = 0; module && i < sizeof functions / sizeof *functions; ++i)
    if (strcmp(name, functions[i].name) == 0) {
      *function = &functions[i];
      return leave(0);
    }
  return leave(NO_SUCH_FUNCTION);
}
DRIVER(cuFuncSetAttribute, (CUfunction function, int attribute, int value), true,
       (void)(function &&attribute &&value))
DRIVER(cuStreamCreate, (CUstream * stream, unsigned flags), true, (void)flags;
       *stream = make(sizeof **stream); **stream = (stream_t){NULL, &(*stream)->first})
RELEASES(cuStreamDestroy_v2, (CUstream stream), carryOut(stream); drop(stream))
DRIVER(cuStreamSynchronize, (CUstream stream), true, carryOut(stream ? stream : &nullStream))
DRIVER(cuMemAlloc_v2, (CUdeviceptr * memory, size_t bytes), true, *memory = (uintptr_t)make(bytes);
       ++allocations)
RELEASES(cuMemFree_v2, (CUdeviceptr memory), drop((void *)(uintptr_t)memory))
DRIVER(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags), true, (void)flags;
       *memory = make(bytes))
RELEASES(cuMemFreeHost, (void *memory), drop(memory))
DRIVER(cuMemcpyHtoDAsync_v2,
       (CUdeviceptr target, const void *source, size_t bytes, CUstream stream), true,
       add(stream, target, source, bytes))
DRIVER(cuMemcpyDtoHAsync_v2, (void *target, CUdeviceptr source, size_t bytes, CUstream stream),
       true, add(stream, (uintptr_t)target, (const void *)(uintptr_t)source, bytes))
DRIVER(cuMemcpyDtoDAsync_v2,
       (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream), true,
       add(stream, target, (const void *)(uintptr_t)source, bytes))
DRIVER(cuMemsetD8Async, (CUdeviceptr target, unsigned char value, size_t bytes, CUstream stream),
       true, if (value) abort();
       add(stream, target, NULL, bytes))

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                        unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                        CUstream stream, void **parameters, void **extra) {
  BEGIN(true);
  if (gridX < 1 || gridY * gridZ * blockY * blockZ != 1 || blockX > MOST_THREADS || extra)
    return leave(1);
  work_t *work = add(stream, 0, NULL, 0);
  work->function = function;
  work->launch = (launch_t){.blocks = gridX, .threads = blockX, .sharedBytes = sharedBytes};
  memcpy(work->launch.words, parameters[0], function->wordBytes);
  memcpy(&work->launch.tasks, parameters[1], sizeof(int64_t));
  memcpy(&work->launch.scratch, parameters[2], sizeof(int64_t));
  memcpy(&work->launch.bytes, parameters[3], sizeof(int64_t));
  ++launches;
  return leave(0);
}

/* Counts for tests: of launches and allocations so far, and of what is still to be released. */
void heddleTestDriverReport(char *text, size_t bytes) {
  pthread_mutex_lock(&mutex);
  snprintf(text, bytes, "{\"launches\": %lld, \"allocations\": %lld, \"live\": %lld}",
           (long long)launches, (long long)allocations, (long long)live);
  pthread_mutex_unlock(&mutex);
}
