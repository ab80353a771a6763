/* tensor.c: dtypes, and the sizes and memory of tensors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/tensor.h"

#include "runtime/base/results.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST_BYTES (INT64_C(1) << 47) /* user half of a 48-bit address space */

static const struct {
  const char *name;
  int bits;
} kDtypes[] = {
    [HEDDLE_FLOAT32] = {"float32", 32},
    [HEDDLE_UINT8] = {"uint8", 8},
    [HEDDLE_INT8] = {"int8", 8},
    [HEDDLE_UINT16] = {"uint16", 16},
    [HEDDLE_INT16] = {"int16", 16},
    [HEDDLE_INT32] = {"int32", 32},
    [HEDDLE_INT64] = {"int64", 64},
    [HEDDLE_STRING] = {"string", 8 * sizeof(heddle_string_t)},
    [HEDDLE_BOOL] = {"bool", 8},
    [HEDDLE_FLOAT16] = {"float16", 16},
    [HEDDLE_FLOAT64] = {"float64", 64},
    [HEDDLE_UINT32] = {"uint32", 32},
    [HEDDLE_UINT64] = {"uint64", 64},
    [HEDDLE_COMPLEX64] = {"complex64", 64},
    [HEDDLE_COMPLEX128] = {"complex128", 128},
    [HEDDLE_BFLOAT16] = {"bfloat16", 16},
    [HEDDLE_FLOAT8E4M3FN] = {"float8e4m3fn", 8},
    [HEDDLE_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", 8},
    [HEDDLE_FLOAT8E5M2] = {"float8e5m2", 8},
    [HEDDLE_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", 8},
    [HEDDLE_UINT4] = {"uint4", 4},
    [HEDDLE_INT4] = {"int4", 4},
    [HEDDLE_FLOAT4E2M1] = {"float4e2m1", 4},
    [HEDDLE_FLOAT8E8M0] = {"float8e8m0", 8},
    [HEDDLE_UINT2] = {"uint2", 2},
    [HEDDLE_INT2] = {"int2", 2},
    [HEDDLE_SEQUENCE] = {"sequence", 8 * sizeof(heddle_tensor_t)},
};

static int isKnown(int32_t dtype) {
  return dtype > 0 && dtype < (int32_t)(sizeof kDtypes / sizeof *kDtypes) && kDtypes[dtype].bits;
}

const char *heddle_dtype_name(int32_t dtype) { return isKnown(dtype) ? kDtypes[dtype].name : "?"; }

int heddle_dtype_bits(int32_t dtype) { return isKnown(dtype) ? kDtypes[dtype].bits : 0; }

int64_t heddle_tensor_bytes(int32_t dtype, int32_t rank, const int64_t *dims) {
  int64_t elements = 1;
  int isEmpty = 0, isUnknown = 0;
  for (int32_t i = 0; i < rank; ++i) {
    isEmpty |= dims[i] == 0;
    isUnknown |= dims[i] < 0;
    if (dims[i] > 0 && __builtin_mul_overflow(elements, dims[i], &elements))
      return HEDDLE_TOO_LARGE;
    if (elements > LARGEST_BYTES)
      return HEDDLE_TOO_LARGE;
  }
  int64_t bytes;
  if (__builtin_mul_overflow(elements, heddle_dtype_bits(dtype), &bytes))
    return HEDDLE_TOO_LARGE;
  bytes = (bytes + 7) / 8;
  if (bytes > LARGEST_BYTES)
    return HEDDLE_TOO_LARGE;
  return isUnknown ? HEDDLE_UNKNOWN : isEmpty ? 0 : bytes;
}

void *heddle_memory_allocate(int64_t bytes) {
  void *memory = NULL;
  if (bytes < 0 || bytes > LARGEST_BYTES)
    return NULL;
  return posix_memalign(&memory, 64, bytes ? (size_t)bytes : 1) == 0 ? memory : NULL;
}

int64_t heddle_memory_physical(void) {
  int64_t pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? pages * bytes : LARGEST_BYTES;
}

void heddle_tensor_release(heddle_tensor_t *tensor) {
  if (!tensor || !tensor->owner)
    return;
  heddle_result_free(tensor->owner);
  tensor->owner = tensor->data = NULL;
  tensor->bytes = 0;
}
