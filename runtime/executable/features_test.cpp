// features_test: CPU features by name. SPDX-License-Identifier: Apache-2.0
#include "runtime/executable/features.h"

#include <gtest/gtest.h>

#include <string>

static std::string missing(const char *features) {
  heddle_text_t text = {};
  heddle_features_missing(features, &text);
  std::string result = text.data ? text.data : "";
  heddle_text_free(&text);
  return result;
}

TEST(Features, NothingNeededIsNothingMissing) { EXPECT_EQ(missing(""), ""); }

TEST(Features, UnknownNamesAreMissingAndListed) {
  EXPECT_EQ(missing("teleport,, avx1024f"), "teleport, avx1024f");
}

#if defined(__x86_64__)
TEST(Features, AgreesWithTheCompilersOwnTest) {
  EXPECT_EQ(missing("sse2"), "");
#define AGREES(name) EXPECT_EQ(missing(name).empty(), __builtin_cpu_supports(name) != 0) << name
  AGREES("avx");
  AGREES("avx2");
  AGREES("fma");
  AGREES("bmi2");
  AGREES("popcnt");
  AGREES("avx512f");
  AGREES("avx512vl");
  AGREES("avx512bw");
  AGREES("avx512dq");
  AGREES("avx512vnni");
  AGREES("avx512vbmi");
  AGREES("avx512bf16");
}

TEST(Features, BothSpellingsAndTheSignOfLlvmAreKnown) {
  EXPECT_EQ(missing("+avx512_vnni").empty(), missing("avx512vnni").empty());
}
#endif
