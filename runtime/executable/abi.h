/* abi.h: what compiled code and the runtime share, and nothing else.
 *
 * The compiler writes these structures as constant data and calls the services through
 * heddle_call_t, so an artefact has no undefined symbol of the runtime. Plain C, fixed layout.
 * Any change of layout raises HEDDLE_ABI_VERSION. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_EXECUTABLE_ABI_H
#define HEDDLE_EXECUTABLE_ABI_H

#include "runtime/executable/devices.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_EXECUTABLE_MAGIC 0x4c444448u /* "HDDL" */
#define HEDDLE_ABI_VERSION 13u
#define HEDDLE_ENTRY_SYMBOL "heddle_executable" /* const heddle_executable_t heddle_executable; */
#define HEDDLE_DYNAMIC (-1)

typedef struct heddle_call heddle_call_t;

/* Runs tasks [begin, end) of one kernel. `args`: slot 0 is the heddle_call_t*, the others are
 * pointers and sizes. `scratch`: the worker's own memory, as large as the launch asked, 64-aligned.
 */
typedef void (*heddle_kernel_fn)(const int64_t *args, int64_t begin, int64_t end, uint8_t *scratch);

/* What the program around the kernels asks of the runtime for lists and strings. One call has one
 * frame of 64-bit numbers, operands first; pointers are numbers too. A tensor T in a frame is its
 * data, its rank, and its dims. `m` is the number of the first of the messages that may be
 * reported; `handle` is a list, or 0 for an absent one; strings are int64 numbers of the run's
 * table. Results are written back into the frame. */
enum heddle_service {
  /* [result handle, absent?, n, n times: dtype, T] */
  HEDDLE_SERVICE_LIST_MAKE,
  /* [result, m: position and length, handle, position (INT64_MAX: the end), dtype, T] */
  HEDDLE_SERVICE_LIST_INSERT,
  /* [result, m: position and length, handle, position] */
  HEDDLE_SERVICE_LIST_ERASE,
  /* [result data, m: position and length, m + 1: ranks found and wanted, handle, position, rank,
   * result dims] */
  HEDDLE_SERVICE_LIST_AT,
  /* [result, handle] */
  HEDDLE_SERVICE_LIST_LENGTH,
  /* [result data, m: the list is empty, m + 1: ranks, m + 2: two sizes differ, handle, axis,
   * new axis?, rank, result dims] */
  HEDDLE_SERVICE_LIST_CONCAT,
  /* [result, m: a size is negative or their sum and the dimension's size differ, axis, keep_dims,
   * int64 sizes or 0, their number or -1 for a scalar, dtype, T] */
  HEDDLE_SERVICE_LIST_SPLIT,
  /* [result, m: it is absent, handle, may it be absent?] */
  HEDDLE_SERVICE_LIST_CAST,
  /* [result, handle of a list of one tensor] */
  HEDDLE_SERVICE_LIST_RANK,
  /* [count, x, y, result] */
  HEDDLE_SERVICE_STRING_CONCAT,
  /* [result data, result pieces, count, x, delimiter, most, counts, is the delimiter int32
   * transitions?] */
  HEDDLE_SERVICE_STRING_SPLIT,
  /* [result data, result count, count, x, stopwords' count, stopwords, 0 as it is 1 lower 2 upper,
   * case_sensitive] */
  HEDDLE_SERVICE_STRING_NORMALIZE,
  /* [count, x, int32 transitions, result] */
  HEDDLE_SERVICE_STRING_MATCH,
  /* [m: string number n is no number, count, dtype, x, result's dtype, result] */
  HEDDLE_SERVICE_STRING_CAST,
  /* [number of the group whose kernels follow, or -1 after them]; only called where the model was
   * compiled for profiles */
  HEDDLE_SERVICE_PROFILE,
  /* [m: the library's own error number, number of heddle_executable_t.calls, operands]: each
   * operand is a T with as many strides, in elements, after its dims. Operand 0 is the result. */
  HEDDLE_SERVICE_LIBRARY,
  /* [result data, result height, result width, m: no library reads images, m + 1: the bytes are no
   * image, count, uint8 x, HEDDLE_PIXELS_*] */
  HEDDLE_SERVICE_IMAGE_DECODE,
  /* [m: HEDDLE_CUSTOM_MISSING and the others of runtime/library/custom.h, results, operands, as
   * many results, as many operands]: each is a tensor of runtime/routine/routine.h, a result one
   * that the service makes. Operand 0 is the text of graph.custom. */
  HEDDLE_SERVICE_CUSTOM,
  /* The frames of these are told by runtime/routine/routine.h. */
  HEDDLE_SERVICE_TOPK,
  HEDDLE_SERVICE_CUMSUM,
  HEDDLE_SERVICE_NONZERO,
  HEDDLE_SERVICE_UNIQUE,
  HEDDLE_SERVICE_SUPPRESS,
  HEDDLE_SERVICE_FOREST,
  HEDDLE_SERVICE_FOURIER,
  /* Of heddle_executable_t.devices. What a run asks of a device is done in the order in which it
   * asks; it waits where the host is to read what comes of it.
   * [result, device, HEDDLE_DEVICE_*] */
  HEDDLE_SERVICE_DEVICE_AREA,
  /* [result, device, bytes]: memory until the end of the run */
  HEDDLE_SERVICE_DEVICE_ALLOC,
  /* [target's device, target, source's device, source, bytes]: device -1 is the host */
  HEDDLE_SERVICE_DEVICE_COPY,
  /* [device, number of its kernel, args, tasks, bytes of scratch]: args as those of
   * heddle_kernel_fn */
  HEDDLE_SERVICE_DEVICE_LAUNCH,
  HEDDLE_SERVICE_COUNT
};

/* What the bytes of a pixel are. */
enum { HEDDLE_PIXELS_RGB, HEDDLE_PIXELS_BGR, HEDDLE_PIXELS_GRAY };

typedef void (*heddle_service_fn)(heddle_call_t *, int64_t *frame);

/* One run of an executable. The runtime fills it, generated code reads it. */
struct heddle_call {
  uint8_t *arena;            /* arena_bytes of heddle_executable_t.sizes, 64-aligned */
  const void *const *inputs; /* one data pointer an input */
  void **outputs;            /* one data pointer an output; NULL where its size is not known before
                                the run: generated code then calls alloc_output */
  int64_t *symbols;          /* one value an entry of heddle_executable_t.symbols; HEDDLE_DYNAMIC
                                where `bind` is to write it */
  int64_t *output_dims;      /* dims of all outputs, one after the other; written by generated code
                                for outputs that `sizes` left at HEDDLE_DYNAMIC */
  const uint8_t *weights;    /* heddle_executable_t.weights */
  int32_t status;            /* 0, or the first failure reported by `fail` */
  int32_t thread_count;
  /* Splits [0, tasks) over the workers and waits. scratch_bytes is per worker. */
  void (*launch)(heddle_call_t *, heddle_kernel_fn, const int64_t *args, int64_t tasks,
                 int64_t scratch_bytes);
  /* Memory for a tensor whose size is known only while running; freed by the runtime after the
   * run. Returns NULL, after `fail`, when there is none. */
  void *(*alloc)(heddle_call_t *, int64_t bytes);
  void *(*alloc_output)(heddle_call_t *, int64_t output, int64_t bytes);
  /* Reports failure number `message` of heddle_executable_t.messages with two values to print;
   * the first one wins. May be called from any worker. */
  void (*fail)(heddle_call_t *, int64_t message, int64_t value, int64_t limit);
  const heddle_service_fn *services; /* HEDDLE_SERVICE_COUNT of them */
  void *runtime;                     /* the runtime's own */
  uint64_t seed;                     /* of the random numbers of this run */
};

typedef struct heddle_io_dim {
  int64_t value;    /* size, or HEDDLE_DYNAMIC */
  int64_t symbol;   /* index into symbols, or -1 when constant or derived */
  const char *text; /* "3", "batch", "(h + 1) floordiv 2" */
} heddle_io_dim_t;

/* What an input or output is. Of the lists dtype is that of their tensors, `rank` is 0. */
enum {
  HEDDLE_IO_TENSOR = 0,
  HEDDLE_IO_SEQUENCE = 1,
  HEDDLE_IO_OPTIONAL = 2,          /* a list of at most one tensor, or none */
  HEDDLE_IO_OPTIONAL_SEQUENCE = 3, /* a list, or none */
  HEDDLE_IO_ANY_RANK = 4 /* a list of one tensor, which callers see as a tensor of some rank */
};

/* How the elements of an input or output stand for the model's own values. */
enum {
  HEDDLE_ENCODING_DENSE = 0,  /* they are the values */
  HEDDLE_ENCODING_MAP = 2,    /* [n, labels]: a sequence of n maps label -> value */
  HEDDLE_ENCODING_INT_MAP = 3 /* as MAP, where the labels are int64 keys in decimal */
};

typedef struct heddle_io {
  const char *name;
  int32_t dtype; /* heddle_dtype_t of heddle/runtime.h = onnx.TensorProto.DataType */
  int32_t rank;
  const heddle_io_dim_t *dims;
  int32_t encoding;
  int32_t label_count;
  const char *const *labels;
  int32_t kind;        /* HEDDLE_IO_* */
  int32_t tensor_rank; /* of a list's tensors, or -1 */
  int32_t shares;      /* of an output: the input whose memory it may have, which the run reads
                          before it writes there; of an input that the run writes: its own
                          number; or -1 */
} heddle_io_t;

typedef struct heddle_text_constant {
  const char *data; /* any bytes */
  int64_t size;
} heddle_text_constant_t;

/* What a library does with the first operands of a call. All are of float32. Of images, dims are
 * batch, channels, then space, whatever lies next to each other in memory. */
enum heddle_function {
  HEDDLE_FUNCTION_MATMUL,      /* result, a, b: batches that are 1 repeat; no numbers */
  HEDDLE_FUNCTION_CONVOLUTION, /* result, x, w [groups, out, in, space]; numbers: for each dimension
                                  of space stride, low and high border, dilation */
  HEDDLE_FUNCTION_LAYER_NORM,  /* result, x, scale, shift: of rows and columns, then of columns;
                                  real: epsilon */
  HEDDLE_FUNCTION_COUNT
};

/* What happens to each element of the result before it is stored, in order. All but GELU take the
 * next operand, whose dims are those of the result or 1. */
enum heddle_post {
  HEDDLE_POST_ADD,
  HEDDLE_POST_SUB,
  HEDDLE_POST_MUL,
  HEDDLE_POST_DIV,
  HEDDLE_POST_GELU, /* x / 2 (1 + erf(x / sqrt 2)) */
  HEDDLE_POST_COUNT
};

/* A kernel that is a function of a library, which the runtime opens when the module is loaded. */
typedef struct heddle_library_call {
  const char *library;      /* file name: "libdnnl.so.2" */
  const char *card, *group; /* for messages */
  int32_t function;         /* HEDDLE_FUNCTION_* */
  int32_t operand_count;
  int32_t number_count;
  int32_t post_count;
  const int64_t *numbers;
  const int64_t *posts; /* HEDDLE_POST_* */
  double real;
  int64_t
      constants; /* bit i: operand i is a weight, which may be kept in the library's own layout */
} heddle_library_call_t;

typedef struct heddle_executable {
  uint32_t magic;
  uint32_t abi_version;
  const char *model;    /* name of the model */
  const char *producer; /* "heddle 0.1.0" */
  const char *target;   /* what it was compiled for: "x86-64-v3", or an LLVM CPU name */
  const char *features; /* CPU features that it needs, comma separated, as __builtin_cpu_supports
                           spells them: "avx2,fma,avx512f" */
  int32_t input_count;
  int32_t output_count;
  int32_t symbol_count;
  int32_t message_count;
  const heddle_io_t *inputs;
  const heddle_io_t *outputs;
  const char *const *symbols;  /* names of the sizes that inputs bind: by their shapes, and by
                                  their values */
  const char *const *messages; /* printf-like: at most two %lld, for `value` and `limit` */
  const uint8_t *weights;
  int64_t weights_bytes;
  /* Writes the symbols that values of inputs are, before anything is allocated. Only inputs,
   * symbols and fail of the call are there. Returns call->status. NULL: there are none. */
  int32_t (*bind)(heddle_call_t *call);
  /* From symbols: bytes of the arena and of those of all devices, and the dims of all outputs one
   * after the other (HEDDLE_DYNAMIC if known only at run time, or a symbol that is HEDDLE_DYNAMIC).
   * Returns 0, or 1 + a message's number, whose two values are at `values` then. */
  int32_t (*sizes)(const int64_t *symbols, int64_t *arena_bytes, int64_t *output_dims,
                   int64_t *values);
  /* Returns call->status. */
  int32_t (*run)(heddle_call_t *call);
  const char *const *kernels; /* kernel_count names, for profiles */
  int64_t kernel_count;
  double flops; /* floating point operations of one run where sizes are constant, else 0 */
  const heddle_text_constant_t *strings; /* the model's, no two equal: numbers 0, 1, 2 ... */
  int64_t string_count;
  const heddle_library_call_t *calls;
  int64_t call_count;
  /* Of a ragged model: the symbol that is dimension 0 of each input and output which has rows, and
   * the symbol whose sum over rows is the work of a batch. No row depends on another, so the
   * runtime may run the batch as blocks of rows, one after the other; it does if the arena would be
   * larger than `row_block` bytes for each thread. row_block 0: the batch is run as a whole. */
  int32_t row_symbol, row_work;
  int64_t row_block;
  /* Where the artefact serves several CPUs: what it has for each, this structure among them, the
   * one that needs most of a CPU first. The runtime takes the first that this CPU can run. */
  const struct heddle_executable *const *variants;
  int64_t variant_count;    /* 0: there is this one alone */
  int32_t keeps_subnormals; /* 0: arithmetic whose result would be a subnormal number gives 0 */
  const heddle_device_t *devices;
  int64_t device_count; /* 0: the host alone */
} heddle_executable_t;

#ifdef __cplusplus
}
#endif
#endif
