// calls_test: calls of oneDNN without an artefact around them, in several threads and shapes.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/library/calls.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

namespace {

const int64_t kPosts[] = {HEDDLE_POST_ADD};
const heddle_library_call_t kProduct = {
    "libdnnl.so.2", "card", "dense", HEDDLE_FUNCTION_MATMUL, 4, 0, 1, nullptr, kPosts, 0.0, 1 << 2};

heddle_executable_t executableOf(const heddle_library_call_t &call) {
  heddle_executable_t executable = {};
  executable.calls = &call;
  executable.call_count = 1;
  return executable;
}

std::string refusal(const heddle_library_call_t &call) {
  heddle_executable_t executable = executableOf(call);
  heddle_status_t *status = heddle_calls_check(&executable, "model.so");
  std::string message = heddle_status_message(status);
  heddle_status_destroy(status);
  return message;
}

/// y = a w + b, for a of `rows` x `depth`; all elements of a row are equal.
void expectProduct(heddle_calls_t *calls, int64_t rows, int64_t depth, std::vector<float> &w,
                   int64_t columns) {
  std::vector<float> a(rows * depth, 2), b(columns, 1), y(rows * columns, NAN);
  std::vector<int64_t> frame = {7, 0};
  auto add = [&](std::vector<float> &data, int64_t m, int64_t n) {
    for (int64_t word : {(int64_t)(intptr_t)data.data(), (int64_t)2, m, n, n, (int64_t)1})
      frame.push_back(word);
  };
  add(y, rows, columns);
  add(a, rows, depth);
  add(w, depth, columns);
  add(b, 1, columns);
  int32_t failure = 0;
  heddle_prepared_t *prepared = heddle_calls_prepare(calls, frame.data(), &failure);
  ASSERT_EQ(failure, 0);
  if (!prepared) {
    EXPECT_TRUE(y.empty());
    return;
  }
  std::vector<float> scratch(heddle_prepared_scratch(prepared) / sizeof(float) + 32);
  void *aligned = (void *)(((intptr_t)scratch.data() + 63) & ~(intptr_t)63);
  EXPECT_EQ(heddle_prepared_run(calls, prepared, frame.data(), aligned), 0);
  for (float value : y)
    ASSERT_EQ(value, 1.0f + 2.0f * depth);
  heddle_prepared_release(calls, prepared);
}

class Calls : public testing::Test {
protected:
  void SetUp() override {
    if (!refusal(kProduct).empty())
      GTEST_SKIP() << refusal(kProduct);
    ASSERT_EQ(heddle_calls_create(&executable, 2, &calls), nullptr);
  }
  void TearDown() override { heddle_calls_destroy(calls); }

  heddle_executable_t executable = executableOf(kProduct);
  heddle_calls_t *calls = nullptr;
};

} // namespace

TEST(CallsOfAnArtefact, AreRefusedWhenTheyMakeNoSense) {
  heddle_library_call_t call = kProduct;
  call.library = "libother.so.1";
  EXPECT_NE(refusal(call).find("'model.so': group 'dense' calls oneDNN, as card 'card' has it, but "
                               "this runtime knows no library 'libother.so.1'"),
            std::string::npos)
      << refusal(call);
  for (auto damage : {+[](heddle_library_call_t &c) { c.function = HEDDLE_FUNCTION_COUNT; },
                      +[](heddle_library_call_t &c) { c.operand_count = 3; },
                      +[](heddle_library_call_t &c) { c.post_count = -1; },
                      +[](heddle_library_call_t &c) { c.posts = nullptr; },
                      +[](heddle_library_call_t &c) { c.number_count = 4; },
                      +[](heddle_library_call_t &c) { c.group = nullptr; }}) {
    call = kProduct;
    damage(call);
    EXPECT_NE(refusal(call).find("call 0 of a library makes no sense"), std::string::npos);
  }
}

TEST_F(Calls, OfAnyShape) {
  std::vector<float> w(64 * 48, 1);
  for (int64_t rows : {0, 1, 7, 64, 65})
    expectProduct(calls, rows, 64, w, 48);
}

TEST_F(Calls, OverNothingAreZero) {
  std::vector<float> none;
  expectProduct(calls, 3, 0, none, 5);
}

TEST_F(Calls, OfMoreShapesThanAreKept) {
  std::vector<float> w(16 * 8, 1);
  for (int round = 0; round < 2; ++round)
    for (int64_t rows = 1; rows <= 80; ++rows)
      expectProduct(calls, rows, 16, w, 8);
}

TEST_F(Calls, InManyThreadsAtOnce) {
  std::vector<float> w(32 * 24, 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int64_t rows = 1; rows <= 20; ++rows)
        expectProduct(calls, rows + i, 32, w, 24);
    });
  for (std::thread &thread : threads)
    thread.join();
}
