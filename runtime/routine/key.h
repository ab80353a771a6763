/* key.h: elements of all types as unsigned numbers that order as they do. In a header, so that a
 * loop over elements of one type has no switch inside. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_ROUTINE_KEY_H
#define HEDDLE_ROUTINE_KEY_H

#include "heddle/runtime.h"
#include "runtime/routine/routine.h"

/* As heddle_key, of the bits of one f32. */
static inline uint64_t heddle_key_f32(uint32_t bits) {
  /* Without branches: signs are as good as random. */
  uint32_t sign = UINT32_C(1) << 31, turned = bits ^ (-(bits >> 31) | sign);
  return (turned + (bits == sign)) | -(uint32_t)((bits & ~sign) > 0x7f800000u);
}
static inline uint64_t keyOfFloat(uint64_t bits, int width, uint64_t infinity) {
  uint64_t sign = UINT64_C(1) << (width - 1), mask = sign | (sign - 1);
  uint64_t magnitude = bits & (sign - 1);
  if (magnitude > infinity)
    return mask;
  return magnitude == 0 ? sign : bits & sign ? ~bits & mask : bits | sign;
}

/* Keys order as the elements do, ascending: NaN is the largest, -0 equals 0. */
#define READ(TYPE) (((const TYPE *)data)[index])
#define OF_SIGNED(TYPE) ((uint64_t)(int64_t)READ(TYPE) ^ (UINT64_C(1) << 63))

static inline uint64_t heddle_key(const void *data, int64_t dtype, int64_t index) {
  switch (dtype) {
  case HEDDLE_FLOAT32:
    return heddle_key_f32(READ(uint32_t));
  case HEDDLE_FLOAT64:
    return keyOfFloat(READ(uint64_t), 64, UINT64_C(0x7ff) << 52);
  case HEDDLE_FLOAT16:
    return keyOfFloat(READ(uint16_t), 16, 0x7c00);
  case HEDDLE_BFLOAT16:
    return keyOfFloat(READ(uint16_t), 16, 0x7f80);
  case HEDDLE_INT8:
    return OF_SIGNED(int8_t);
  case HEDDLE_INT16:
    return OF_SIGNED(int16_t);
  case HEDDLE_INT32:
    return OF_SIGNED(int32_t);
  case HEDDLE_UINT16:
    return READ(uint16_t);
  case HEDDLE_UINT32:
    return READ(uint32_t);
  case HEDDLE_UINT64:
    return READ(uint64_t);
  case HEDDLE_UINT8:
  case HEDDLE_BOOL:
    return READ(uint8_t);
  default: /* int64, and the numbers of strings */
    return OF_SIGNED(int64_t);
  }
}

#undef READ
#undef OF_SIGNED

#endif /* HEDDLE_ROUTINE_KEY_H */
