/* denormals.h: what becomes of results below the normal numbers, for a while on this thread: they
 * are kept, or are zero, since arithmetic on them is up to 100 times slower on x86.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_TASK_DENORMALS_H
#define HEDDLE_TASK_DENORMALS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Returns what heddle_denormals_restore needs. Operands are taken as they are: comparisons, casts
 * and logarithms of denormals are right. */
static inline uint64_t heddle_denormals_keep(bool isKept) {
  uint32_t before = _mm_getcsr();
  _mm_setcsr((before & ~0x8040u) | (isKept ? 0 : 0x8000u)); /* of results, without "are zero" */
  return before;
}
/* Only the mode comes back: flags of exceptions raised meanwhile stay raised. */
static inline void heddle_denormals_restore(uint64_t before) {
  _mm_setcsr((_mm_getcsr() & ~0x8040u) | ((uint32_t)before & 0x8040u));
}
#elif defined(__aarch64__)
static inline uint64_t heddle_denormals_keep(bool isKept) {
  const uint64_t flush = UINT64_C(1) << 24; /* operands, too */
  uint64_t before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" ::"r"(isKept ? before & ~flush : before | flush));
  return before;
}
static inline void heddle_denormals_restore(uint64_t before) {
  __asm__ volatile("msr fpcr, %0" ::"r"(before));
}
#else
static inline uint64_t heddle_denormals_keep(bool isKept) {
  (void)isKept;
  return 0;
}
static inline void heddle_denormals_restore(uint64_t before) { (void)before; }
#endif
#endif
