/* stream.c: see stream.h.
 *
 * A copy from the host goes through pinned memory: the run may write what it has copied at once,
 * and the device reads it in the stream's order. A copy to the host waits, and brings along what
 * kernels have reported, so that the host never goes on with what a failed kernel has left.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/stream.h"

#include "runtime/device/launches.h"

#include <stdlib.h>
#include <string.h>

enum {
  RECORD_BYTES = 64,       /* of heddle_device_failure_t, on both sides */
  STAGED_BYTES = 4 << 20,  /* larger copies from the host wait */
  PIECE_BYTES = 512,       /* of allocations */
  THREADS = 256,           /* of a block of several workers */
  WAVES = 4,               /* times that its blocks fill the device: the last ones end together */
  RESIDENT_THREADS = 2048, /* of a processor */
  MOST_IDLE_RUNS = 8,      /* for which memory is kept that none of them asks for */
};
#define MOST_SCRATCH_BYTES (INT64_C(256) << 20) /* of all workers, if one block needs no more */

typedef struct block {
  CUdeviceptr data; /* 0: none */
  int64_t bytes;
  int32_t idle_runs; /* -1: this run has it */
} block_t;

typedef struct stream {
  heddle_gpu_t *gpu;
  CUstream stream; /* NULL: nothing below is there */
  uint8_t *pinned; /* the record, then STAGED_BYTES */
  int64_t staged;  /* bytes that the stream may yet read */
  block_t record, arena, scratch;
  block_t *blocks; /* of heddle_streams_allocate */
  int64_t block_count, block_capacity;
  heddle_launches_t launches; /* that the driver does not know of yet, and graphs */
  const char *group;          /* the last that was launched, or NULL */
  bool isBusy;                /* something was asked since it was waited for */
  bool hasLaunched;           /* a kernel, since then */
} stream_t;

struct heddle_streams {
  heddle_devices_t *devices;
  heddle_status_t *status; /* the first that the driver said */
  heddle_device_failure_t failure;
  bool isBroken; /* the driver has failed: the next run begins with new streams */
  stream_t streams[];
};

/* False where the run has failed. */
static bool settle(heddle_streams_t *streams, heddle_status_t *status) {
  streams->isBroken |= status != NULL;
  if (streams->status)
    heddle_status_destroy(status);
  else
    streams->status = status;
  return !streams->isBroken && !streams->failure.status;
}

static heddle_status_t *flush(stream_t *stream) {
  return heddle_launches_flush(&stream->launches, stream->gpu, stream->stream, &stream->group);
}

/* Waits, after copying `bytes` to the host. */
static heddle_status_t *waitFor(heddle_streams_t *streams, stream_t *stream, void *target,
                                CUdeviceptr source, int64_t bytes) {
  heddle_gpu_t *gpu = stream->gpu;
  bool mayFail = gpu->description->may_fail && stream->hasLaunched;
  heddle_status_t *status = NULL;
  if (!stream->isBusy && !bytes)
    return NULL;
  status = flush(stream);
  if (!status && mayFail) /* first: a copy to memory that is not pinned waits by itself */
    status = HEDDLE_ASK(gpu, stream->group, cuMemcpyDtoHAsync, stream->pinned, stream->record.data,
                        sizeof(heddle_device_failure_t), stream->stream);
  if (!status && bytes)
    status = HEDDLE_ASK(gpu, stream->group, cuMemcpyDtoHAsync, target, source, (size_t)bytes,
                        stream->stream);
  if (!status)
    status = HEDDLE_ASK(gpu, stream->group, cuStreamSynchronize, stream->stream);
  if (status)
    return status;
  stream->isBusy = stream->hasLaunched = false;
  stream->staged = 0;
  if (mayFail && !streams->failure.status)
    memcpy(&streams->failure, stream->pinned, sizeof streams->failure);
  return NULL;
}

static heddle_status_t *freeBlock(stream_t *stream, block_t *block) {
  heddle_status_t *status = HEDDLE_ASK(stream->gpu, NULL, cuMemFree, block->data);
  *block = (block_t){0};
  return status;
}

/* Frees the blocks that no run has asked for, for so many runs. */
static heddle_status_t *dropIdle(stream_t *stream, int32_t runs) {
  heddle_status_t *status = NULL;
  int64_t kept = 0;
  for (int64_t i = 0; i < stream->block_count; ++i) {
    block_t *block = &stream->blocks[i];
    if (status || block->idle_runs < runs)
      stream->blocks[kept++] = *block;
    else
      status = freeBlock(stream, block);
  }
  stream->block_count = kept;
  return status;
}

static heddle_status_t *tooLarge(const stream_t *stream) {
  return heddle_status_make(HEDDLE_LIMIT,
                            "model '%s': a tensor of these inputs is larger than an address space",
                            stream->gpu->model);
}

static heddle_status_t *makeBlock(stream_t *stream, int64_t bytes, block_t *block) {
  if (bytes < 0 || bytes > INT64_MAX - PIECE_BYTES)
    return tooLarge(stream);
  CUdeviceptr data = 0;
  bytes = bytes ? (bytes + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES : PIECE_BYTES;
  CUresult error = stream->gpu->driver->cuMemAlloc(&data, (size_t)bytes);
  int64_t blocks = stream->block_count;
  if (error == CUDA_ERROR_OUT_OF_MEMORY) { /* what no run needs now may be enough */
    heddle_status_t *status = dropIdle(stream, 0);
    if (status)
      return status;
    if (stream->block_count < blocks)
      error = stream->gpu->driver->cuMemAlloc(&data, (size_t)bytes);
  }
  if (!error)
    *block = (block_t){.data = data, .bytes = bytes, .idle_runs = -1};
  return heddle_gpu_check(stream->gpu, error, "cuMemAlloc", stream->group);
}

/* Makes the block at least this large, forgetting what it held. */
static heddle_status_t *growBlock(heddle_streams_t *streams, stream_t *stream, block_t *block,
                                  int64_t bytes) {
  if (bytes <= block->bytes && bytes >= 0)
    return NULL;
  heddle_status_t *status = NULL;
  if (block->data)
    status = waitFor(streams, stream, NULL, 0, 0);
  if (!status && block->data)
    status = freeBlock(stream, block);
  return status ? status : makeBlock(stream, bytes, block);
}

static heddle_status_t *openStream(stream_t *stream) {
  heddle_gpu_t *gpu = stream->gpu;
  void *pinned = NULL;
  CUstream made = NULL;
  heddle_status_t *status =
      HEDDLE_ASK(gpu, NULL, cuMemHostAlloc, &pinned, RECORD_BYTES + STAGED_BYTES, 0);
  if (status)
    return status;
  stream->pinned = pinned;
  status = makeBlock(stream, RECORD_BYTES, &stream->record);
  if (!status)
    status = HEDDLE_ASK(gpu, NULL, cuStreamCreate, &made, CU_STREAM_NON_BLOCKING);
  if (!status)
    stream->stream = made;
  return status;
}

static void closeStream(stream_t *stream) {
  const heddle_driver_t *driver = stream->gpu->driver;
  CUcontext former;
  bool isHeld = stream->pinned && !driver->cuCtxPushCurrent(stream->gpu->context);
  if (isHeld && stream->stream)
    driver->cuStreamSynchronize(stream->stream);
  heddle_launches_destroy(&stream->launches, isHeld ? driver : NULL);
  if (isHeld) {
    if (stream->stream)
      driver->cuStreamDestroy(stream->stream);
    const block_t alone[] = {stream->record, stream->arena, stream->scratch};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; ++i)
      if (alone[i].data)
        driver->cuMemFree(alone[i].data);
    for (int64_t i = 0; i < stream->block_count; ++i)
      driver->cuMemFree(stream->blocks[i].data);
    driver->cuMemFreeHost(stream->pinned);
    driver->cuCtxPopCurrent(&former);
  }
  free(stream->blocks);
}

void heddle_streams_destroy(heddle_streams_t *streams) {
  if (!streams)
    return;
  for (int64_t i = 0; i < streams->devices->count; ++i)
    closeStream(&streams->streams[i]);
  heddle_status_destroy(streams->status);
  free(streams);
}

static heddle_status_t *beginStream(heddle_streams_t *streams, stream_t *stream,
                                    int64_t arenaBytes) {
  heddle_gpu_t *gpu = stream->gpu;
  stream->group = NULL;
  heddle_status_t *status = stream->stream ? NULL : openStream(stream);
  if (!status)
    status = growBlock(streams, stream, &stream->arena, arenaBytes);
  if (status || !gpu->description->may_fail)
    return status;
  stream->isBusy = true;
  return HEDDLE_ASK(gpu, NULL, cuMemsetD8Async, stream->record.data, 0,
                    sizeof(heddle_device_failure_t), stream->stream);
}

static heddle_streams_t *makeStreams(heddle_devices_t *devices) {
  heddle_streams_t *streams =
      calloc(1, sizeof *streams + (size_t)devices->count * sizeof(stream_t));
  if (!streams)
    return NULL;
  streams->devices = devices;
  for (int64_t i = 0; i < devices->count; ++i)
    streams->streams[i].gpu = &devices->gpus[i];
  return streams;
}

heddle_status_t *heddle_streams_begin(heddle_devices_t *devices, const int64_t *arenaBytes,
                                      heddle_streams_t **result) {
  if (*result && (*result)->isBroken) {
    heddle_streams_destroy(*result);
    *result = NULL;
  }
  for (int64_t i = 0; i < devices->count; ++i) {
    const char *lost = __atomic_load_n(&devices->gpus[i].lost, __ATOMIC_ACQUIRE);
    if (lost)
      return heddle_status_make(HEDDLE_REFUSED, "%s", lost);
  }
  if (!*result)
    *result = makeStreams(devices);
  heddle_streams_t *streams = *result;
  if (!streams)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for a run");
  streams->failure = (heddle_device_failure_t){0};
  heddle_status_t *status = NULL;
  for (int64_t i = 0; !status && i < devices->count; ++i) {
    status = heddle_gpu_enter(&devices->gpus[i]);
    if (!status)
      status = heddle_gpu_leave(&devices->gpus[i],
                                beginStream(streams, &streams->streams[i], arenaBytes[i]));
  }
  streams->isBroken = status != NULL;
  return status;
}

bool heddle_streams_area(heddle_streams_t *streams, int64_t *frame) {
  const stream_t *stream = &streams->streams[frame[1]];
  frame[0] =
      (int64_t)(frame[2] == HEDDLE_DEVICE_WEIGHTS ? stream->gpu->weights : stream->arena.data);
  return true;
}

/* The smallest kept block that is not much too large, or a new one. */
static heddle_status_t *takeBlock(stream_t *stream, int64_t bytes, CUdeviceptr *data) {
  block_t *best = NULL;
  for (int64_t i = 0; i < stream->block_count; ++i) {
    block_t *block = &stream->blocks[i];
    bool fits = block->idle_runs >= 0 && block->bytes >= bytes &&
                block->bytes / 2 <= (bytes > PIECE_BYTES ? bytes : PIECE_BYTES);
    if (fits && (!best || block->bytes < best->bytes))
      best = block;
  }
  if (!best && stream->block_count == stream->block_capacity) {
    int64_t capacity = stream->block_capacity * 2 + 8;
    block_t *blocks = realloc(stream->blocks, (size_t)capacity * sizeof *blocks);
    if (!blocks)
      return heddle_status_make(HEDDLE_LIMIT, "out of memory for a run of model '%s'",
                                stream->gpu->model);
    stream->blocks = blocks;
    stream->block_capacity = capacity;
  }
  if (!best) {
    block_t made;
    heddle_status_t *status = makeBlock(stream, bytes, &made);
    if (status)
      return status;
    best = &stream->blocks[stream->block_count++];
    *best = made;
  }
  best->idle_runs = -1;
  *data = best->data;
  return NULL;
}

bool heddle_streams_allocate(heddle_streams_t *streams, int64_t *frame) {
  stream_t *stream = &streams->streams[frame[1]];
  CUdeviceptr data = 0;
  heddle_status_t *status = heddle_gpu_enter(stream->gpu);
  if (!status)
    status = heddle_gpu_leave(stream->gpu, takeBlock(stream, frame[2], &data));
  frame[0] = (int64_t)data;
  return settle(streams, status);
}

static heddle_status_t *copyFromHost(heddle_streams_t *streams, stream_t *stream,
                                     CUdeviceptr target, const void *source, int64_t bytes) {
  const void *from = source;
  bool isStaged = bytes <= STAGED_BYTES;
  if (isStaged && bytes > STAGED_BYTES - stream->staged) {
    heddle_status_t *status = waitFor(streams, stream, NULL, 0, 0);
    if (status)
      return status;
  }
  if (isStaged) {
    from = memcpy(stream->pinned + RECORD_BYTES + stream->staged, source, (size_t)bytes);
    stream->staged += (bytes + RECORD_BYTES - 1) / RECORD_BYTES * RECORD_BYTES;
  }
  heddle_status_t *status = flush(stream);
  stream->isBusy = true;
  if (!status)
    status = HEDDLE_ASK(stream->gpu, stream->group, cuMemcpyHtoDAsync, target, from, (size_t)bytes,
                        stream->stream);
  return status || isStaged ? status : waitFor(streams, stream, NULL, 0, 0);
}

/* Copies from or to the host, or within the device of the stream. */
static heddle_status_t *copyWith(heddle_streams_t *streams, stream_t *stream,
                                 const int64_t *frame) {
  enum { TARGETS_DEVICE, TARGET, SOURCES_DEVICE, SOURCE, BYTES };
  heddle_gpu_t *gpu = stream->gpu;
  CUdeviceptr target = (CUdeviceptr)frame[TARGET], source = (CUdeviceptr)frame[SOURCE];
  heddle_status_t *status = heddle_gpu_enter(gpu);
  if (status)
    return status;
  if (frame[SOURCES_DEVICE] < 0) {
    status =
        copyFromHost(streams, stream, target, (const void *)(intptr_t)frame[SOURCE], frame[BYTES]);
  } else if (frame[TARGETS_DEVICE] < 0) {
    status = waitFor(streams, stream, (void *)(intptr_t)frame[TARGET], source, frame[BYTES]);
  } else {
    status = flush(stream);
    stream->isBusy = true;
    if (!status)
      status = HEDDLE_ASK(gpu, stream->group, cuMemcpyDtoDAsync, target, source,
                          (size_t)frame[BYTES], stream->stream);
  }
  return heddle_gpu_leave(gpu, status);
}

/* Copies from one device to another, by way of the host. */
static heddle_status_t *copyAcross(heddle_streams_t *streams, const int64_t *frame) {
  stream_t *from = &streams->streams[frame[2]], *to = &streams->streams[frame[0]];
  void *between = malloc((size_t)frame[4]);
  if (!between)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for a run of model '%s'",
                              from->gpu->model);
  const int64_t toHost[] = {-1, (int64_t)(intptr_t)between, frame[2], frame[3], frame[4]};
  const int64_t toDevice[] = {frame[0], frame[1], -1, (int64_t)(intptr_t)between, frame[4]};
  heddle_status_t *status = copyWith(streams, from, toHost);
  if (!status)
    status = copyWith(streams, to, toDevice);
  free(between);
  return status;
}

bool heddle_streams_copy(heddle_streams_t *streams, int64_t *frame) {
  int64_t to = frame[0], from = frame[2], bytes = frame[4];
  heddle_status_t *status = NULL;
  if (bytes <= 0)
    return true;
  if (to < 0 && from < 0)
    memmove((void *)(intptr_t)frame[1], (const void *)(intptr_t)frame[3], (size_t)bytes);
  else if (to >= 0 && from >= 0 && to != from)
    status = copyAcross(streams, frame);
  else
    status = copyWith(streams, &streams->streams[to >= 0 ? to : from], frame);
  return settle(streams, status);
}

/* How a kernel is launched. */
typedef struct grid {
  int64_t blocks, threads;
  int64_t workers; /* in all */
  int64_t stride;  /* bytes of scratch that each has */
} grid_t;

/* False where scratch is larger than an address space. */
static bool gridOf(const stream_t *stream, const heddle_device_kernel_t *kernel, int64_t tasks,
                   int64_t scratchBytes, grid_t *grid) {
  int64_t processors = stream->gpu->processors, atOnce;
  int64_t team = kernel->threads ? kernel->threads : 1;
  *grid = (grid_t){.threads = team <= HEDDLE_WARP ? THREADS : team};
  int64_t workers = grid->threads / team; /* of a block */
  grid->blocks = tasks / workers + (tasks % workers > 0);
  int64_t resident = processors * (RESIDENT_THREADS / grid->threads);
  int64_t most = team == 1 ? resident * WAVES : INT32_MAX;
  if (scratchBytes > 0) {
    if (scratchBytes > INT64_MAX - 63 ||
        __builtin_mul_overflow(grid->stride = (scratchBytes + 63) & ~INT64_C(63), workers, &atOnce))
      return false;
    atOnce = MOST_SCRATCH_BYTES / atOnce;
    most = atOnce < 1 ? 1 : atOnce < resident ? atOnce : resident;
  }
  grid->blocks = grid->blocks < most ? grid->blocks : most;
  grid->workers = grid->blocks * workers;
  return true;
}

static heddle_status_t *launch(heddle_streams_t *streams, stream_t *stream, int64_t number,
                               const int64_t *args, int64_t tasks, int64_t scratchBytes) {
  heddle_gpu_t *gpu = stream->gpu;
  const heddle_device_kernel_t *kernel = &gpu->description->kernels[number];
  grid_t grid;
  if (!gridOf(stream, kernel, tasks, scratchBytes, &grid))
    return tooLarge(stream);
  heddle_status_t *status = NULL;
  if (grid.stride)
    status = growBlock(streams, stream, &stream->scratch, grid.stride * grid.workers);
  if (status)
    return status;
  int64_t scratch = grid.stride ? (int64_t)stream->scratch.data : 0;
  stream->isBusy = stream->hasLaunched = true;
  const heddle_launch_t asked = {.number = number,
                                 .blocks = (unsigned)grid.blocks,
                                 .threads = (unsigned)grid.threads,
                                 .tasks = tasks,
                                 .scratch = scratch,
                                 .stride = grid.stride};
  return heddle_launches_add(&stream->launches, gpu, &asked, args, stream->record.data)
             ? NULL
             : heddle_status_make(HEDDLE_LIMIT, "out of memory for a run of model '%s'",
                                  gpu->model);
}

bool heddle_streams_launch(heddle_streams_t *streams, int64_t *frame) {
  stream_t *stream = &streams->streams[frame[0]];
  if (frame[3] <= 0)
    return true;
  heddle_status_t *status = heddle_gpu_enter(stream->gpu);
  if (!status)
    status = heddle_gpu_leave(
        stream->gpu,
        launch(streams, stream, frame[1], (const int64_t *)(intptr_t)frame[2], frame[3], frame[4]));
  return settle(streams, status);
}

bool heddle_streams_wait(heddle_streams_t *streams) {
  bool isFine = !streams->isBroken && !streams->failure.status;
  for (int64_t i = 0; i < streams->devices->count; ++i) {
    stream_t *stream = &streams->streams[i];
    if (!stream->isBusy)
      continue;
    heddle_status_t *status = heddle_gpu_enter(stream->gpu);
    if (!status)
      status = heddle_gpu_leave(stream->gpu, waitFor(streams, stream, NULL, 0, 0));
    isFine = settle(streams, status);
  }
  return isFine;
}

bool heddle_streams_end(heddle_streams_t *streams) {
  bool isFine = heddle_streams_wait(streams);
  for (int64_t i = 0; i < streams->devices->count && !streams->isBroken; ++i) {
    stream_t *stream = &streams->streams[i];
    bool isOld = false;
    for (int64_t j = 0; j < stream->block_count; ++j)
      isOld |= ++stream->blocks[j].idle_runs >= MOST_IDLE_RUNS;
    if (!isOld)
      continue;
    heddle_status_t *status = heddle_gpu_enter(stream->gpu);
    if (!status)
      status = heddle_gpu_leave(stream->gpu, dropIdle(stream, MOST_IDLE_RUNS));
    isFine = settle(streams, status);
  }
  return isFine;
}

heddle_device_failure_t heddle_streams_failure(const heddle_streams_t *streams) {
  return streams->failure;
}

heddle_status_t *heddle_streams_take_status(heddle_streams_t *streams) {
  heddle_status_t *status = streams->status;
  streams->status = NULL;
  return status;
}

int64_t heddle_streams_bytes(const heddle_streams_t *streams) {
  int64_t bytes = 0;
  for (int64_t i = 0; streams && i < streams->devices->count; ++i) {
    const stream_t *stream = &streams->streams[i];
    bytes += stream->record.bytes + stream->arena.bytes + stream->scratch.bytes;
    for (int64_t j = 0; j < stream->block_count; ++j)
      bytes += stream->blocks[j].bytes;
  }
  return bytes;
}
