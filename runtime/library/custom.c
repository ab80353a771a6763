/* custom.c: the table of the ops of the user's own, and their checked calls.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/library/custom.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct entry {
  const heddle_custom_op_t *op;
  const char *library; /* "" where there is none */
  struct entry *next;
} entry_t;

static entry_t *entries; /* the last one registered first; none ever goes */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *problemOf(const heddle_custom_op_t *op) {
  if (op->version != HEDDLE_CUSTOM_OP_VERSION)
    return "was built for another version of heddle/custom_op.h";
  if (!op->domain || !op->name || !*op->name)
    return "has no domain or no name";
  return op->shape && op->compute ? NULL : "lacks a function";
}

static heddle_status_t *add(const heddle_custom_op_t *op, const char *library) {
  const char *problem = problemOf(op);
  if (problem)
    return heddle_status_make(HEDDLE_USAGE, "%s%san op of your own %s%s%s", library,
                              *library ? ": " : "", problem,
                              op->version == HEDDLE_CUSTOM_OP_VERSION && op->name ? ": " : "",
                              op->version == HEDDLE_CUSTOM_OP_VERSION && op->name ? op->name : "");
  entry_t *entry = malloc(sizeof *entry);
  if (!entry)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory");
  pthread_mutex_lock(&lock);
  *entry = (entry_t){op, library, entries};
  entries = entry;
  pthread_mutex_unlock(&lock);
  return NULL;
}

heddle_status_t *heddle_custom_op_register(const heddle_custom_op_t *op) {
  if (!op)
    return heddle_status_make(HEDDLE_USAGE, "an op of your own is NULL");
  return add(op, "");
}

/* Whether dlopen could be kept waiting, as by a pipe. */
static int isIrregular(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

static const heddle_custom_op_t *const *opsOf(void *library) {
  return dlsym(library, HEDDLE_CUSTOM_OP_SYMBOL);
}

heddle_status_t *heddle_custom_op_load(const char *library) {
  char *path = library ? realpath(library, NULL) : NULL;
  if (!path)
    return heddle_status_make(HEDDLE_USAGE, "cannot read the library of ops '%s'",
                              library ? library : "");
  int isFile = !isIrregular(path);
  void *handle = isFile ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  heddle_status_t *status = NULL;
  if (!handle) {
    const char *why = isFile ? dlerror() : "it is not a regular file";
    status = heddle_status_make(HEDDLE_USAGE, "cannot load the library of ops '%s': %s", path,
                                why ? why : "unknown");
  } else {
    const heddle_custom_op_t *const *ops = opsOf(handle);
    if (!ops || !*ops)
      status =
          heddle_status_make(HEDDLE_USAGE,
                             "'%s' is no library of ops: it must define '%s', an array of pointers "
                             "to heddle_custom_op_t that ends with NULL",
                             path, HEDDLE_CUSTOM_OP_SYMBOL);
    for (; !status && *ops; ++ops)
      status = add(*ops, path); /* keeps the path */
  }
  if (status)
    free(path);
  return status;
}

static int isCalled(const heddle_custom_op_t *op, const char *domain, const char *name) {
  return strcmp(op->domain, domain) == 0 && strcmp(op->name, name) == 0;
}

const heddle_custom_op_t *heddle_custom_registered(const char *domain, const char *name,
                                                   const char **library) {
  pthread_mutex_lock(&lock);
  entry_t *entry = entries;
  while (entry && !isCalled(entry->op, domain, name))
    entry = entry->next;
  pthread_mutex_unlock(&lock);
  if (library)
    *library = entry ? entry->library : "";
  return entry ? entry->op : NULL;
}

void heddle_custom_describe(heddle_text_t *text) {
  pthread_mutex_lock(&lock);
  for (entry_t *entry = entries; entry; entry = entry->next) {
    struct stat about;
    heddle_text_add(text, "%s:%s %s ", entry->op->domain, entry->op->name, entry->library);
    if (!*entry->library)
      heddle_text_add(text, "%ld %p\n", (long)getpid(), (const void *)entry->op);
    else if (stat(entry->library, &about) == 0)
      heddle_text_add(text, "%lld %lld %ld\n", (long long)about.st_size,
                      (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
  }
  pthread_mutex_unlock(&lock);
}

const heddle_custom_op_t *heddle_custom_find(const char *library, const char *domain,
                                             const char *name) {
  const heddle_custom_op_t *op = heddle_custom_registered(domain, name, NULL);
  if (op || !*library)
    return op;
  void *handle =
      isIrregular(library) ? NULL : dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char *base = strrchr(library, '/');
  if (!handle && base)
    handle = dlopen(base + 1, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const heddle_custom_op_t *const *ops = handle ? opsOf(handle) : NULL;
  for (; ops && *ops; ++ops)
    if (!problemOf(*ops) && isCalled(*ops, domain, name))
      return *ops;
  return NULL;
}

int64_t heddle_custom_width(int32_t dtype) {
  int bits = heddle_dtype_bits(dtype);
  int isPlain = (dtype >= HEDDLE_FLOAT32 && dtype <= HEDDLE_UINT64 && dtype != HEDDLE_STRING) ||
                dtype == HEDDLE_BFLOAT16;
  return isPlain && bits >= 8 ? bits / 8 : 0;
}

int64_t heddle_custom_bytes(const heddle_custom_tensor_t *tensor) {
  int64_t bytes = heddle_custom_width(tensor->dtype);
  int isEmpty = 0;
  if (!bytes || tensor->rank < 0 || tensor->rank > HEDDLE_CUSTOM_OP_MAX_RANK)
    return -1;
  for (int32_t i = 0; i < tensor->rank; ++i)
    if (tensor->dims[i] < 0 ||
        (tensor->dims[i] > 0 && __builtin_mul_overflow(bytes, tensor->dims[i], &bytes)))
      return -1;
    else
      isEmpty |= tensor->dims[i] == 0;
  return isEmpty ? 0 : bytes > INT64_MAX / 2 ? -1 : bytes;
}

heddle_custom_outcome_t heddle_custom_shape(const heddle_custom_op_t *op,
                                            heddle_custom_call_t *call) {
  memset(call->outputs, 0, (size_t)call->output_count * sizeof *call->outputs);
  call->data = op->data;
  int32_t failure = op->shape(call);
  if (failure)
    return (heddle_custom_outcome_t){HEDDLE_CUSTOM_SHAPE, failure, 0};
  for (int32_t i = 0; i < call->output_count; ++i) {
    const heddle_custom_tensor_t *output = &call->outputs[i];
    int64_t worst = 0;
    for (int32_t d = 0; d < output->rank && d < HEDDLE_CUSTOM_OP_MAX_RANK; ++d)
      if (worst >= 0 && (output->dims[d] < 0 || output->dims[d] > worst))
        worst = output->dims[d];
    if (heddle_custom_bytes(output) < 0)
      return (heddle_custom_outcome_t){HEDDLE_CUSTOM_RESULT, i, worst};
  }
  return (heddle_custom_outcome_t){HEDDLE_CUSTOM_OK, 0, 0};
}

static uint8_t *guardOf(const heddle_custom_tensor_t *output) {
  return (uint8_t *)output->data + heddle_custom_bytes(output);
}

heddle_custom_outcome_t heddle_custom_compute(const heddle_custom_op_t *op,
                                              heddle_custom_call_t *call) {
  uint8_t pattern[HEDDLE_CUSTOM_GUARD];
  for (int i = 0; i < HEDDLE_CUSTOM_GUARD; ++i)
    pattern[i] = (uint8_t)(0xa5 + 31 * i);
  for (int32_t i = 0; i < call->output_count; ++i) {
    heddle_custom_tensor_t *output = &call->outputs[i];
    memset(output->data, 0, (size_t)heddle_custom_bytes(output)); /* what it does not write */
    memcpy(guardOf(output), pattern, sizeof pattern);
  }
  call->data = op->data;
  /* The op may change what it is shown, which is not asked again. */
  int32_t count = call->output_count;
  heddle_custom_tensor_t *outputs = call->outputs;
  uint8_t **guards = malloc((size_t)count * sizeof *guards + 1);
  if (!guards)
    return (heddle_custom_outcome_t){HEDDLE_CUSTOM_COMPUTE, -1, 0};
  for (int32_t i = 0; i < count; ++i)
    guards[i] = guardOf(&outputs[i]);
  heddle_custom_outcome_t outcome = {HEDDLE_CUSTOM_OK, op->compute(call), 0};
  if (outcome.value)
    outcome.kind = HEDDLE_CUSTOM_COMPUTE;
  for (int32_t i = count; i-- > 0;)
    if (memcmp(guards[i], pattern, sizeof pattern) != 0)
      outcome = (heddle_custom_outcome_t){HEDDLE_CUSTOM_OVERRUN, i, 0};
    else if (outputs[i].dtype == HEDDLE_BOOL) /* other code relies on 0 and 1 */
      for (uint8_t *at = outputs[i].data; at < guards[i]; ++at)
        *at = *at != 0;
  free(guards);
  return outcome;
}
