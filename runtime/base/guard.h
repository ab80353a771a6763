/* guard.h: bytes that nobody may touch, where AddressSanitizer judges compiled code; elsewhere they
 * are none and cost nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_RUNTIME_BASE_GUARD_H
#define HEDDLE_RUNTIME_BASE_GUARD_H

#include <stdint.h>

#ifdef HEDDLE_GUARDS
#include <sanitizer/asan_interface.h>
enum { HEDDLE_GUARD_BYTES = 64 }; /* between pieces of a block */
static inline void heddle_guard(const void *begin, int64_t bytes) {
  __asan_poison_memory_region(begin, (size_t)bytes);
}
static inline void heddle_unguard(const void *begin, int64_t bytes) {
  __asan_unpoison_memory_region(begin, (size_t)bytes);
}
#else
enum { HEDDLE_GUARD_BYTES = 0 };
static inline void heddle_guard(const void *begin, int64_t bytes) { (void)begin, (void)bytes; }
static inline void heddle_unguard(const void *begin, int64_t bytes) { (void)begin, (void)bytes; }
#endif

#endif /* HEDDLE_RUNTIME_BASE_GUARD_H */
