/* runtime.h: load a compiled model and run it. C11, no dependency but libc.
 *
 * Handles are opaque. A function that can fail returns heddle_status_t*: NULL is success, anything
 * else is a message that the caller destroys; its out parameters are then left as they were.
 * Strings and arrays that a function returns belong to the handle that they were asked of.
 * Every handle may be used by many threads at once, except while it is being destroyed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_RUNTIME_H
#define HEDDLE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_API __attribute__((visibility("default")))

/* ---- Status. The codes are the exit codes of the `heddle` command. */

typedef enum heddle_code {
  HEDDLE_OK = 0,
  HEDDLE_DIFFERS = 1,  /* numbers differ from the reference */
  HEDDLE_USAGE = 2,    /* the caller's mistake: a missing file, a wrong feed, a bad option */
  HEDDLE_REFUSED = 3,  /* a model or artefact that Heddle does not accept, and why */
  HEDDLE_LIMIT = 4,    /* out of memory, or a size too large for this machine */
  HEDDLE_INTERNAL = 5, /* a mistake in Heddle */
} heddle_code_t;

typedef struct heddle_status heddle_status_t;

HEDDLE_API heddle_code_t heddle_status_code(const heddle_status_t *status);  /* NULL: HEDDLE_OK */
HEDDLE_API const char *heddle_status_message(const heddle_status_t *status); /* NULL: "" */
HEDDLE_API void heddle_status_destroy(heddle_status_t *status);

HEDDLE_API const char *heddle_version(void); /* "0.1.0" */

/* ---- Tensors. */

/* The numbers are those of onnx.TensorProto.DataType. */
typedef enum heddle_dtype {
  HEDDLE_FLOAT32 = 1,
  HEDDLE_UINT8 = 2,
  HEDDLE_INT8 = 3,
  HEDDLE_UINT16 = 4,
  HEDDLE_INT16 = 5,
  HEDDLE_INT32 = 6,
  HEDDLE_INT64 = 7,
  HEDDLE_STRING = 8, /* heddle_string_t */
  HEDDLE_BOOL = 9,
  HEDDLE_FLOAT16 = 10,
  HEDDLE_FLOAT64 = 11,
  HEDDLE_UINT32 = 12,
  HEDDLE_UINT64 = 13,
  HEDDLE_COMPLEX64 = 14,
  HEDDLE_COMPLEX128 = 15,
  HEDDLE_BFLOAT16 = 16,
  HEDDLE_FLOAT8E4M3FN = 17,
  HEDDLE_FLOAT8E4M3FNUZ = 18,
  HEDDLE_FLOAT8E5M2 = 19,
  HEDDLE_FLOAT8E5M2FNUZ = 20,
  HEDDLE_UINT4 = 21, /* two elements a byte, the first one in the low half */
  HEDDLE_INT4 = 22,
  HEDDLE_FLOAT4E2M1 = 23,
  HEDDLE_FLOAT8E8M0 = 24, /* a power of two */
  HEDDLE_UINT2 = 25,      /* four elements a byte, the first one in the lowest bits */
  HEDDLE_INT2 = 26,
  HEDDLE_SEQUENCE = 256, /* heddle_tensor_t */
} heddle_dtype_t;

HEDDLE_API const char *heddle_dtype_name(int32_t dtype); /* "float32"; "?" when unknown */
HEDDLE_API int heddle_dtype_bits(int32_t dtype);         /* of one element; 0 when unknown */

#define HEDDLE_MAX_RANK 16
#define HEDDLE_UNKNOWN (-1) /* a size known only at run time */

/* One string, of any bytes; `data` need not end with a zero. */
typedef struct heddle_string {
  const char *data;
  size_t size;
} heddle_string_t;

/* A dense row-major tensor. The memory is the caller's, unless the runtime allocated it: then
 * `owner` is set, and heddle_tensor_release takes it back: a session, while it lives, keeps large
 * results for its next runs, no more than they need. Zero the struct before filling it.
 *
 * A sequence has dtype HEDDLE_SEQUENCE, rank 1, its length in dims[0], and its tensors, an array of
 * heddle_tensor_t, at data. An optional is a sequence of one tensor, and an optional sequence is a
 * sequence; dims[0] is -1 where they are absent. `owner` of the outermost holds everything inside,
 * the bytes of strings too. */
typedef struct heddle_tensor {
  void *data;    /* aligned for its dtype; only read when it is an input */
  int64_t bytes; /* of memory at data, at least what dtype and dims need */
  int32_t dtype;
  int32_t rank;
  int64_t dims[HEDDLE_MAX_RANK];
  void *owner;
} heddle_tensor_t;

HEDDLE_API void heddle_tensor_release(heddle_tensor_t *tensor);

/* ---- Modules: a compiled model, ready for sessions. */

typedef struct heddle_module heddle_module_t;
typedef struct heddle_executable heddle_executable_t; /* what compiled code exports */

/* Loads an artefact written by `heddle compile`. Refuses, before any of its code runs, what is not
 * one, is truncated, is for another machine or version, or needs what this CPU lacks. Of an
 * artefact for several CPUs the module is the form that needs most of what this CPU has, or the one
 * that the environment variable HEDDLE_CPU names; heddle_module_info says which. */
HEDDLE_API heddle_status_t *heddle_module_load(const char *path, heddle_module_t **module);

/* Whether the artefact is, byte for byte, what was compiled: it ends with a digest of what stands
 * before, which loading does not look at, since that would read all weights. For files that came a
 * long way; it tells damage, not forgery. */
HEDDLE_API heddle_status_t *heddle_module_verify(const char *path);

/* A model that is linked into the program. `release(data)`, which may be NULL, is called when the
 * last user of the executable is gone; it is not called when this function fails. */
HEDDLE_API heddle_status_t *heddle_module_from_executable(const heddle_executable_t *executable,
                                                          void (*release)(void *data), void *data,
                                                          heddle_module_t **module);

/* Sessions keep what they need: a module may be destroyed before its sessions. */
HEDDLE_API void heddle_module_destroy(heddle_module_t *module);

typedef struct heddle_module_info {
  const char *model;
  const char *producer; /* "heddle 0.1.0" */
  const char *target;   /* what it was compiled for: "x86-64-v3" */
  const char *features; /* what it needs of a CPU, comma separated */
  int64_t weights_bytes;
  double flops; /* floating point operations of one run; 0 when not constant */
} heddle_module_info_t;

HEDDLE_API heddle_module_info_t heddle_module_info(const heddle_module_t *module);

/* How the elements of an input or output stand for the model's own values. */
typedef enum heddle_encoding {
  HEDDLE_DENSE = 0,   /* they are the values */
  HEDDLE_MAP = 2,     /* a sequence of n maps label -> value: a tensor [n, label_count] */
  HEDDLE_INT_MAP = 3, /* as MAP, where the labels are int64 keys in decimal */
} heddle_encoding_t;

typedef enum heddle_kind {
  HEDDLE_KIND_TENSOR = 0,
  HEDDLE_KIND_SEQUENCE = 1, /* its tensors have dtype and rank; rank is -1 when unknown */
  HEDDLE_KIND_OPTIONAL = 2, /* one tensor or none */
  HEDDLE_KIND_OPTIONAL_SEQUENCE = 3,
  HEDDLE_KIND_ANY_RANK = 4, /* a tensor whose rank differs from run to run; rank is -1 */
} heddle_kind_t;

typedef struct heddle_dim {
  int64_t value;    /* or HEDDLE_UNKNOWN where inputs decide */
  const char *text; /* "3", "batch", "(h + 1) floordiv 2" */
} heddle_dim_t;

typedef struct heddle_value {
  const char *name;
  int32_t dtype;
  int32_t rank;
  const heddle_dim_t *dims;
  int32_t encoding;
  int32_t label_count;
  const char *const *labels;
  int32_t kind;   /* heddle_kind_t; dims are NULL for all but HEDDLE_KIND_TENSOR */
  int32_t shares; /* of an output: the input whose buffer it may be given, too; of an input that the
                     run writes: its own number; or -1 */
} heddle_value_t;

HEDDLE_API size_t heddle_module_input_count(const heddle_module_t *module);
HEDDLE_API size_t heddle_module_output_count(const heddle_module_t *module);
/* NULL when there is no such index. */
HEDDLE_API const heddle_value_t *heddle_module_input(const heddle_module_t *module, size_t index);
HEDDLE_API const heddle_value_t *heddle_module_output(const heddle_module_t *module, size_t index);

/* ---- Pools: threads that runs share. Only for programs that want more than one thread. */

typedef struct heddle_pool heddle_pool_t;
struct pthreadpool;

/* A pool of `threads` threads, the calling one among them. 0, or more than the process may use
 * (sched_getaffinity), means all that it may use. Workers sleep 50 us after the last launch. */
HEDDLE_API heddle_status_t *heddle_pool_create(int threads, heddle_pool_t **pool);
/* The caller's own pthreadpool_t, which must outlive the pool. Its library, libpthreadpool.so.0, is
 * the one that the process has loaded; a status if it has none. */
HEDDLE_API heddle_status_t *heddle_pool_from_pthreadpool(struct pthreadpool *threads,
                                                         heddle_pool_t **pool);
/* The caller's own scheduler: parallel(data, task, context, count) calls task(context, i) for each
 * i < count, on any threads, and returns when all are done. count <= threads. It may be called by
 * several threads at once. */
typedef void (*heddle_task_fn)(void *context, size_t index);
typedef void (*heddle_parallel_fn)(void *data, heddle_task_fn task, void *context, size_t count);
HEDDLE_API heddle_status_t *heddle_pool_from_callback(heddle_parallel_fn parallel, void *data,
                                                      int threads, heddle_pool_t **pool);
HEDDLE_API int heddle_pool_threads(const heddle_pool_t *pool);
/* After the sessions that use it. */
HEDDLE_API void heddle_pool_destroy(heddle_pool_t *pool);

/* ---- Sessions: a module with threads and memory. */

typedef struct heddle_session heddle_session_t;

typedef struct heddle_session_options {
  size_t size;         /* sizeof(heddle_session_options_t) */
  int threads;         /* of a pool of its own; 0: all that the process may use (where the program
                          has heddle_pool_create); not used when `pool` is given */
  heddle_pool_t *pool; /* shared with others, or NULL; must outlive the session */
  /* Called after each group of a run, on the thread of the run, with the group's number and how
   * long its kernels took. Only models that were compiled with `profiles` call it; groups that are
   * launched at once count as the last of them. May be NULL. */
  void (*profile)(void *data, int64_t group, int64_t nanoseconds);
  void *profile_data;
} heddle_session_options_t;

HEDDLE_API heddle_status_t *heddle_session_create(heddle_module_t *module,
                                                  const heddle_session_options_t *options,
                                                  heddle_session_t **session);
HEDDLE_API void heddle_session_destroy(heddle_session_t *session);

/* Fills dtype, rank, dims and bytes of every output for inputs of these shapes, whose data is not
 * looked at. Sizes and ranks known only at run time are HEDDLE_UNKNOWN, and `bytes` is then too. */
HEDDLE_API heddle_status_t *
heddle_session_output_shapes(heddle_session_t *session, const heddle_tensor_t *inputs,
                             size_t input_count, heddle_tensor_t *outputs, size_t output_count);

/* Runs once. Inputs and outputs are in the module's order. An output with data is written there
 * if `bytes` suffice, and may not overlap another tensor, but for the input that it `shares`, whose
 * place it may take; one with NULL data is allocated and must be given to heddle_tensor_release. In
 * both cases its dtype, rank and dims are filled in. Strings and sequences are always allocated. A
 * wrong feed gives one message that lists all that is wrong. */
HEDDLE_API heddle_status_t *heddle_session_run(heddle_session_t *session,
                                               const heddle_tensor_t *inputs, size_t input_count,
                                               heddle_tensor_t *outputs, size_t output_count);

/* The next run that begins draws its random numbers from this seed, those after it from the numbers
 * that follow. A new session begins with 0. Equal seeds give equal numbers on every machine. */
HEDDLE_API void heddle_session_seed(heddle_session_t *session, uint64_t seed);

typedef struct heddle_memory {
  int64_t arena_bytes;   /* intermediate tensors of the last run that ended */
  int64_t scratch_bytes; /* workers' own memory of that run, all workers together */
  int64_t held_bytes;    /* arenas and scratch kept now, for all runs that there were at once */
  int64_t peak_bytes;    /* the most that was ever held */
  int64_t kept_bytes;    /* of released results, kept for runs to come; not in held_bytes */
  int64_t device_bytes;  /* of devices, kept now for all runs that there were at once: arenas and
                            scratch; neither in held_bytes nor with the weights there */
} heddle_memory_t;

HEDDLE_API heddle_memory_t heddle_session_memory(const heddle_session_t *session);
HEDDLE_API int heddle_session_threads(const heddle_session_t *session);

#ifdef __cplusplus
}
#endif
#endif
