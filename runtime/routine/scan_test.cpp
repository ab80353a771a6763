// scan_test: each form of the scan that this CPU can run, against conditions asked one by one.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable/features.h"
#include "runtime/routine/scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace {

constexpr int64_t kFeatures = 5, kLanes = 16;

bool isHere(const heddle_scan_form_t &form) {
  heddle_text_t text = {};
  heddle_features_missing(form.features, &text);
  bool isWhole = text.length == 0;
  heddle_text_free(&text);
  return isWhole;
}

/// Rows of numbers with ties, zeros of both signs, infinities and NaN.
std::vector<float> rowsOf(int64_t rows, std::mt19937 &random) {
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f};
  std::vector<float> x(rows * kFeatures);
  for (float &value : x)
    value = random() % 3 ? float(random() % 9) - 4 : special[random() % std::size(special)];
  return x;
}

/// The key that `limit` has in a row.
int32_t keyOf(float limit) {
  int32_t bits = std::bit_cast<int32_t>(limit);
  return bits < 0 ? INT32_MAX ^ bits : bits;
}

struct Scan {
  std::vector<int32_t> words;
  std::vector<float> limits;
  Scan(int32_t count, bool isMirrored, std::mt19937 &random) : words{count} {
    for (int32_t i = 0; i < count; ++i) {
      int32_t feature = random() % (isMirrored ? 2 * kFeatures : kFeatures);
      limits.push_back(float(random() % 9) - 4);
      words.insert(words.end(), {feature, keyOf(limits.back()), int32_t(random() | random()),
                                 int32_t(random() | random())});
    }
    words.resize(words.size() + count + 1);
  }
};

class Forms : public testing::TestWithParam<int> {};

TEST_P(Forms, ReachTheLeavesThatConditionsLeaveOpen) {
  const heddle_scan_form_t &form = heddle_scan_forms[GetParam()];
  if (!isHere(form))
    GTEST_SKIP() << "needs " << form.features;
  std::mt19937 random(17);
  for (int64_t rows : {1, 2, 15, 16, 17, 33, 64, 100})
    for (int32_t count : {1, 7, 31, 32, 63})
      for (bool isMirrored : {false, true}) {
        Scan list(count, isMirrored, random);
        const int32_t *next = list.words.data();
        heddle_scan_t scan = heddle_scan_next(&next);
        ASSERT_EQ(next, list.words.data() + list.words.size());
        std::vector<float> x = rowsOf(rows, random);
        int64_t width = isMirrored ? 2 * kFeatures : kFeatures;
        int64_t room = (rows + kLanes - 1) / kLanes * kLanes;
        std::vector<int32_t> keys(room * width);
        std::vector<uint32_t> leaves(room, ~0u);
        form.keys(reinterpret_cast<const uint32_t *>(x.data()), rows, kFeatures, isMirrored,
                  keys.data());
        form.scan(&scan, keys.data(), width, rows, leaves.data());
        for (int64_t row = 0; row < rows; ++row) {
          uint64_t open = ~0ull;
          for (int32_t i = 0; i < count; ++i) {
            const int32_t *condition = scan.conditions + 4 * i;
            bool isMirror = condition[0] >= kFeatures;
            float value = x[row * kFeatures + condition[0] % kFeatures];
            if (std::isnan(value) ? !isMirror : value > list.limits[i])
              open &= uint64_t(uint32_t(condition[3])) << 32 | uint32_t(condition[2]);
          }
          uint64_t most = count >= 32 ? 63 : 31;
          EXPECT_EQ(leaves[row], std::min<uint64_t>(std::countr_zero(open), most))
              << "row " << row << " of " << rows << ", " << count << " conditions";
        }
      }
}

#if defined(__x86_64__)
INSTANTIATE_TEST_SUITE_P(All, Forms, testing::Values(0, 1, 2));
#else
INSTANTIATE_TEST_SUITE_P(All, Forms, testing::Values(0));
#endif

TEST(Form, ChosenIsTheFirstThatTheCpuHas) {
  const heddle_scan_form_t *first = heddle_scan_forms;
  while (!isHere(*first))
    ++first;
  EXPECT_EQ(heddle_scan_form(), first);
}

} // namespace
