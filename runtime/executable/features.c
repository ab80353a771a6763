/* features.c: CPU features by name, from CPUID itself; on AArch64 from what the kernel says of
 * them.
 *
 * A table and not __builtin_cpu_supports: that takes only literals, its names differ between
 * compilers and versions (GCC 12 knows no amx), and LLVM spells some of them another way. Both
 * spellings are listed. A feature whose registers the operating system does not save counts as
 * missing. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/executable/features.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { EAX, EBX, ECX, EDX };
enum { STATE_NONE = 0, STATE_AVX = 0x6, STATE_AVX512 = 0xe6, STATE_AMX = 0x60000 }; /* of XCR0 */

static const struct {
  const char *name;
  uint32_t leaf, subleaf;
  uint8_t word, bit;
  uint32_t state;
} kFeatures[] = {
    {"sse", 1, 0, EDX, 25, STATE_NONE},
    {"sse2", 1, 0, EDX, 26, STATE_NONE},
    {"sse3", 1, 0, ECX, 0, STATE_NONE},
    {"ssse3", 1, 0, ECX, 9, STATE_NONE},
    {"sse4.1", 1, 0, ECX, 19, STATE_NONE},
    {"sse4.2", 1, 0, ECX, 20, STATE_NONE},
    {"crc32", 1, 0, ECX, 20, STATE_NONE},
    {"cx16", 1, 0, ECX, 13, STATE_NONE},
    {"movbe", 1, 0, ECX, 22, STATE_NONE},
    {"popcnt", 1, 0, ECX, 23, STATE_NONE},
    {"avx", 1, 0, ECX, 28, STATE_AVX},
    {"fma", 1, 0, ECX, 12, STATE_AVX},
    {"f16c", 1, 0, ECX, 29, STATE_AVX},
    {"bmi", 7, 0, EBX, 3, STATE_NONE},
    {"bmi2", 7, 0, EBX, 8, STATE_NONE},
    {"lzcnt", 0x80000001, 0, ECX, 5, STATE_NONE},
    {"avx2", 7, 0, EBX, 5, STATE_AVX},
    {"avxvnni", 7, 1, EAX, 4, STATE_AVX},
    {"avxvnniint8", 7, 1, EDX, 4, STATE_AVX},
    {"avxneconvert", 7, 1, EDX, 5, STATE_AVX},
    {"avxifma", 7, 1, EAX, 23, STATE_AVX},
    {"avx512f", 7, 0, EBX, 16, STATE_AVX512},
    {"avx512dq", 7, 0, EBX, 17, STATE_AVX512},
    {"avx512ifma", 7, 0, EBX, 21, STATE_AVX512},
    {"avx512cd", 7, 0, EBX, 28, STATE_AVX512},
    {"avx512bw", 7, 0, EBX, 30, STATE_AVX512},
    {"avx512vl", 7, 0, EBX, 31, STATE_AVX512},
    {"avx512vbmi", 7, 0, ECX, 1, STATE_AVX512},
    {"avx512vbmi2", 7, 0, ECX, 6, STATE_AVX512},
    {"avx512vnni", 7, 0, ECX, 11, STATE_AVX512},
    {"avx512bitalg", 7, 0, ECX, 12, STATE_AVX512},
    {"avx512vpopcntdq", 7, 0, ECX, 14, STATE_AVX512},
    {"avx512fp16", 7, 0, EDX, 23, STATE_AVX512},
    {"avx512bf16", 7, 1, EAX, 5, STATE_AVX512},
    {"gfni", 7, 0, ECX, 8, STATE_NONE},
    {"vaes", 7, 0, ECX, 9, STATE_AVX},
    {"vpclmulqdq", 7, 0, ECX, 10, STATE_AVX},
    {"avx512vp2intersect", 7, 0, EDX, 8, STATE_AVX512},
    {"amx-bf16", 7, 0, EDX, 22, STATE_AMX},
    {"amx-tile", 7, 0, EDX, 24, STATE_AMX},
    {"amx-int8", 7, 0, EDX, 25, STATE_AMX},
};

static uint32_t savedState(void) {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) /* OSXSAVE */
    return 0;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return a;
}

/* Asks Linux to save the registers of AMX, which it does for a process that has asked (arch_prctl's
 * ARCH_REQ_XCOMP_PERM, since 5.16). */
static bool mayUseMatrices(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
  enum { REQUEST = 0x1023, TILES = 18 };
  return syscall(SYS_arch_prctl, REQUEST, TILES) == 0;
#else
  return false;
#endif
}

static bool hasFeature(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof kFeatures / sizeof *kFeatures; ++i) {
    if (strlen(kFeatures[i].name) != length || memcmp(kFeatures[i].name, name, length) != 0)
      continue;
    if (kFeatures[i].state == STATE_AMX && !mayUseMatrices())
      return false;
    uint32_t words[4];
    return __get_cpuid_count(kFeatures[i].leaf, kFeatures[i].subleaf, words, words + 1, words + 2,
                             words + 3) &&
           (words[kFeatures[i].word] >> kFeatures[i].bit & 1) &&
           (savedState() & kFeatures[i].state) == kFeatures[i].state;
  }
  return false;
}
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

static const struct {
  const char *name;
  unsigned long type, bits; /* of getauxval */
} kFeatures[] = {
    {"neon", AT_HWCAP, HWCAP_ASIMD},      {"crc", AT_HWCAP, HWCAP_CRC32},
    {"lse", AT_HWCAP, HWCAP_ATOMICS},     {"rdm", AT_HWCAP, HWCAP_ASIMDRDM},
    {"rcpc", AT_HWCAP, HWCAP_LRCPC},      {"fullfp16", AT_HWCAP, HWCAP_FPHP | HWCAP_ASIMDHP},
    {"complxnum", AT_HWCAP, HWCAP_FCMA},  {"jsconv", AT_HWCAP, HWCAP_JSCVT},
    {"dotprod", AT_HWCAP, HWCAP_ASIMDDP}, {"fp16fml", AT_HWCAP, HWCAP_ASIMDFHM},
    {"i8mm", AT_HWCAP2, HWCAP2_I8MM},     {"bf16", AT_HWCAP2, HWCAP2_BF16},
};

static bool hasFeature(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof kFeatures / sizeof *kFeatures; ++i)
    if (strlen(kFeatures[i].name) == length && memcmp(kFeatures[i].name, name, length) == 0)
      return (getauxval(kFeatures[i].type) & kFeatures[i].bits) == kFeatures[i].bits;
  return false;
}
#else
/* Elsewhere an artefact is compiled for the baseline and names no features. */
static bool hasFeature(const char *name, size_t length) {
  (void)name;
  (void)length;
  return false;
}
#endif

void heddle_features_missing(const char *features, heddle_text_t *missing) {
  for (const char *at = features; *at;) {
    at += strspn(at, ", +"); /* LLVM writes "+avx2" */
    size_t length = strcspn(at, ", ");
    char name[32] = {0}; /* GCC spells "avx512vbmi2" "avx512_vbmi2" in places: no '_' here */
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < sizeof name; ++i)
      if (at[i] != '_')
        name[used++] = at[i];
    if (length && !hasFeature(name, used))
      heddle_text_add(missing, "%s%.*s", missing->length ? ", " : "", (int)length, at);
    at += length;
  }
}
