/* denormals.h: treat denormal numbers as zero for a while on this thread. Arithmetic on denormals
 * is up to 100 times slower on x86; no model means them. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_TASK_DENORMALS_H
#define HEDDLE_TASK_DENORMALS_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Returns what heddle_denormals_restore needs. */
static inline uint64_t heddle_denormals_disable(void) {
  uint32_t before = _mm_getcsr();
  _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
  return before;
}
/* Only the mode comes back: flags of exceptions raised meanwhile stay raised. */
static inline void heddle_denormals_restore(uint64_t before) {
  _mm_setcsr((_mm_getcsr() & ~0x8040u) | ((uint32_t)before & 0x8040u));
}
#elif defined(__aarch64__)
static inline uint64_t heddle_denormals_disable(void) {
  uint64_t before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" ::"r"(before | (UINT64_C(1) << 24)));
  return before;
}
static inline void heddle_denormals_restore(uint64_t before) {
  __asm__ volatile("msr fpcr, %0" ::"r"(before));
}
#else
static inline uint64_t heddle_denormals_disable(void) { return 0; }
static inline void heddle_denormals_restore(uint64_t before) { (void)before; }
#endif
#endif
