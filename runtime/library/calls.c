/* calls.c: the calls of an executable, and what a session keeps of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/library/calls.h"

#include "runtime/base/tensor.h"
#include "runtime/library/primitives.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Shapes beyond these are prepared for each run anew. */
enum { MOST_SHAPES = 64 };

typedef struct kept {
  heddle_prepared_t *shapes;
  heddle_weight_t *weights;
  int count;
} kept_t;

struct heddle_calls {
  const heddle_executable_t *executable;
  const heddle_onednn_t *dnnl;
  int threads;
  pthread_mutex_t mutex; /* of all below */
  kept_t kept[];         /* one per call */
};

/* Which of its own and its posts' operands a function has. */
static int operandsOf(const heddle_library_call_t *call) {
  int count = call->function == HEDDLE_FUNCTION_LAYER_NORM ? 4 : 3;
  for (int i = 0; i < call->post_count; ++i)
    count += call->posts[i] != HEDDLE_POST_GELU;
  return count;
}

static bool isSound(const heddle_library_call_t *call) {
  bool isConvolution = call->function == HEDDLE_FUNCTION_CONVOLUTION;
  if (!call->library || !call->card || !call->group || call->function < 0 ||
      call->function >= HEDDLE_FUNCTION_COUNT || call->post_count < 0 || call->number_count < 0 ||
      call->post_count > HEDDLE_MOST_OPERANDS || (call->post_count && !call->posts) ||
      (call->number_count && !call->numbers) ||
      (isConvolution ? call->number_count % 4 != 0 || call->number_count > 4 * 3
                     : call->number_count != 0))
    return false;
  for (int i = 0; i < call->post_count; ++i)
    if (call->posts[i] < 0 || call->posts[i] >= HEDDLE_POST_COUNT)
      return false;
  return call->operand_count == operandsOf(call) && call->operand_count <= HEDDLE_MOST_OPERANDS;
}

heddle_status_t *heddle_calls_check(const heddle_executable_t *executable, const char *origin) {
  for (int64_t i = 0; i < executable->call_count; ++i) {
    const heddle_library_call_t *call = &executable->calls[i];
    if (!isSound(call))
      return heddle_status_make(HEDDLE_REFUSED,
                                "'%s' is a damaged artefact; call %d of a library makes no sense",
                                origin, (int)i);
    heddle_text_t why = {0};
    if (strcmp(call->library, HEDDLE_ONEDNN_FILE) != 0)
      heddle_text_add(&why, "this runtime knows no library '%s', but '" HEDDLE_ONEDNN_FILE "'",
                      call->library);
    else
      heddle_onednn_open(&why);
    if (!why.length)
      continue;
    heddle_status_t *status = heddle_status_make(
        HEDDLE_REFUSED,
        "'%s': group '%s' calls oneDNN, as card '%s' has it, but %s; install Debian's 'libdnnl2', "
        "name the library's file in " HEDDLE_ONEDNN_VARIABLE ", or compile the model without this "
        "card",
        origin, call->group, call->card, why.data ? why.data : "?");
    heddle_text_free(&why);
    return status;
  }
  return NULL;
}

heddle_status_t *heddle_calls_create(const heddle_executable_t *executable, int threads,
                                     heddle_calls_t **result) {
  *result = NULL;
  if (!executable->call_count)
    return NULL;
  heddle_text_t why = {0};
  const heddle_onednn_t *dnnl = heddle_onednn_open(&why); /* again: it was checked */
  heddle_text_free(&why);
  heddle_calls_t *calls =
      dnnl ? calloc(1, sizeof *calls + (size_t)executable->call_count * sizeof *calls->kept) : NULL;
  if (!calls)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for a session");
  calls->executable = executable;
  calls->dnnl = dnnl;
  calls->threads = threads;
  pthread_mutex_init(&calls->mutex, NULL);
  *result = calls;
  return NULL;
}

static void destroyPrepared(const heddle_calls_t *calls, heddle_prepared_t *prepared) {
  if (prepared->primitive)
    calls->dnnl->dnnl_primitive_destroy(prepared->primitive);
  free(prepared);
}

void heddle_calls_destroy(heddle_calls_t *calls) {
  if (!calls)
    return;
  for (int64_t i = 0; i < calls->executable->call_count; ++i) {
    kept_t *kept = &calls->kept[i];
    while (kept->shapes) {
      heddle_prepared_t *prepared = kept->shapes;
      kept->shapes = prepared->next;
      destroyPrepared(calls, prepared);
    }
    while (kept->weights) {
      heddle_weight_t *weight = kept->weights;
      kept->weights = weight->next;
      free(weight->data);
      free(weight);
    }
  }
  pthread_mutex_destroy(&calls->mutex);
  free(calls);
}

static int64_t countOf(const heddle_operand_t *operand) {
  int64_t count = 1;
  for (int64_t i = 0; i < operand->rank; ++i)
    count *= operand->dims[i];
  return count;
}

/* A product over nothing is 0: of one column and one row of zeros, which each run has in its
 * scratch. Returns their elements. */
static int64_t replaceEmpty(const heddle_library_call_t *call, heddle_operand_t *operands) {
  heddle_operand_t *a = &operands[1], *b = &operands[2];
  if (call->function != HEDDLE_FUNCTION_MATMUL || a->dims[a->rank - 1] != 0)
    return 0;
  a->dims[a->rank - 1] = b->dims[b->rank - 2] = 1;
  for (int i = 1; i <= 2; ++i) {
    heddle_operand_t *operand = &operands[i];
    int64_t stride = 1;
    operand->data = NULL;
    for (int64_t d = operand->rank; d-- > 0; stride *= operand->dims[d])
      operand->strides[d] = stride;
  }
  return countOf(a) + countOf(b);
}

static bool readOperands(const heddle_library_call_t *call, const int64_t *frame,
                         heddle_operand_t *operands, int64_t *zeros) {
  const int64_t *word = frame + 2;
  memset(operands, 0, (size_t)call->operand_count * sizeof *operands);
  for (int i = 0; i < call->operand_count; ++i) {
    operands[i].data = (void *)(intptr_t)*word++;
    operands[i].rank = *word++;
    for (int64_t d = 0; d < operands[i].rank; ++d)
      operands[i].dims[d] = *word++;
    for (int64_t d = 0; d < operands[i].rank; ++d)
      operands[i].strides[d] = *word++;
  }
  *zeros = replaceEmpty(call, operands);
  return countOf(&operands[0]) != 0;
}

static bool isFor(const heddle_prepared_t *prepared, const heddle_operand_t *operands) {
  for (int i = 0; i < prepared->operand_count; ++i) {
    const heddle_operand_t *known = &prepared->operands[i], *given = &operands[i];
    size_t bytes = (size_t)given->rank * sizeof(dnnl_dim_t);
    if (known->rank != given->rank || memcmp(known->dims, given->dims, bytes) != 0 ||
        memcmp(known->strides, given->strides, bytes) != 0)
      return false;
  }
  return true;
}

/* oneDNN asks OpenMP for the number of threads of the calling thread; returns what it was. */
static int useThreads(const heddle_calls_t *calls, int threads) {
  if (!calls->dnnl->omp_set_num_threads)
    return 0;
  int before = calls->dnnl->omp_get_max_threads();
  if (before != threads)
    calls->dnnl->omp_set_num_threads(threads);
  return before;
}

static heddle_prepared_t *make(heddle_calls_t *calls, int64_t number, heddle_operand_t *operands,
                               int64_t zeros, int32_t *failure) {
  const heddle_library_call_t *call = &calls->executable->calls[number];
  kept_t *kept = &calls->kept[number];
  heddle_prepared_t *prepared = calloc(1, sizeof *prepared);
  if (!prepared) {
    *failure = dnnl_out_of_memory;
    return NULL;
  }
  prepared->call = call;
  int before = useThreads(calls, calls->threads);
  dnnl_status_t status =
      heddle_primitive_make(calls->dnnl, call, operands, &kept->weights, prepared);
  useThreads(calls, before);
  if (status != dnnl_success) {
    destroyPrepared(calls, prepared);
    *failure = (int32_t)status;
    return NULL;
  }
  memcpy(prepared->operands, operands, (size_t)call->operand_count * sizeof *operands);
  prepared->zero_bytes = zeros * (int64_t)sizeof(float);
  if (kept->count < MOST_SHAPES) {
    prepared->isKept = true;
    prepared->next = kept->shapes;
    kept->shapes = prepared;
    ++kept->count;
  }
  return prepared;
}

heddle_prepared_t *heddle_calls_prepare(heddle_calls_t *calls, const int64_t *frame,
                                        int32_t *failure) {
  *failure = 0;
  int64_t number = frame[1], zeros = 0;
  heddle_operand_t operands[HEDDLE_MOST_OPERANDS];
  if (!readOperands(&calls->executable->calls[number], frame, operands, &zeros))
    return NULL;
  pthread_mutex_lock(&calls->mutex);
  heddle_prepared_t *prepared = calls->kept[number].shapes;
  while (prepared && !isFor(prepared, operands))
    prepared = prepared->next;
  if (!prepared)
    prepared = make(calls, number, operands, zeros, failure);
  pthread_mutex_unlock(&calls->mutex);
  return prepared;
}

static int64_t alignedScratch(const heddle_prepared_t *prepared) {
  return (prepared->scratch_bytes + 63) & ~INT64_C(63);
}

int64_t heddle_prepared_scratch(const heddle_prepared_t *prepared) {
  return alignedScratch(prepared) + prepared->zero_bytes;
}

int32_t heddle_prepared_run(heddle_calls_t *calls, heddle_prepared_t *prepared,
                            const int64_t *frame, void *scratch) {
  heddle_operand_t operands[HEDDLE_MOST_OPERANDS];
  int64_t zeros = 0;
  readOperands(prepared->call, frame, operands, &zeros);
  if (zeros) {
    float *data = (float *)((char *)scratch + alignedScratch(prepared));
    memset(data, 0, (size_t)prepared->zero_bytes);
    operands[1].data = data;
    operands[2].data = data + countOf(&operands[1]);
  }
  int before = useThreads(calls, calls->threads);
  dnnl_status_t status = heddle_primitive_run(calls->dnnl, prepared, operands, scratch);
  useThreads(calls, before);
  return (int32_t)status;
}

void heddle_prepared_release(heddle_calls_t *calls, heddle_prepared_t *prepared) {
  if (!prepared->isKept)
    destroyPrepared(calls, prepared);
}
