// session_test: runs, outputs, memory, many threads at once. SPDX-License-Identifier: Apache-2.0
#include "runtime/session/testing.h"

#include <cmath>
#include <limits>
#include <thread>

namespace {

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(i);
  return values;
}

/// Runs `increment` on `batch` rows and checks every number.
void checkIncrement(TestSession &session, int64_t batch) {
  std::vector<float> x = ramp(static_cast<size_t>(batch) * 4), z = ramp(static_cast<size_t>(batch));
  std::vector<heddle_tensor_t> outputs(1);
  ASSERT_EQ(session.run({tensorOver(x, {batch, 4}), tensorOver(z, {batch})}, outputs), "");
  EXPECT_EQ(outputs[0].rank, 2);
  EXPECT_EQ(outputs[0].dims[0], batch);
  EXPECT_EQ(outputs[0].bytes, batch * 16);
  const float *y = static_cast<const float *>(outputs[0].data);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(y[i], x[i] + z[i / 4] + 1) << i;
  heddle_tensor_release(&outputs[0]);
  EXPECT_EQ(outputs[0].data, nullptr);
}

TEST(Session, RunsAnyBatchWithAnyThreads) {
  for (int threads : {0, 1, 2, 64}) {
    TestSession session(increment_executable, threads);
    EXPECT_GE(heddle_session_threads(session.handle), 1);
    for (int64_t batch : {1, 2, 3, 100, 0, 7})
      checkIncrement(session, batch);
  }
}

TEST(Session, WritesIntoTheCallersBuffer) {
  TestSession session(increment_executable);
  std::vector<float> x = ramp(4), z = {1}, y(5, -1);
  std::vector<heddle_tensor_t> outputs = {tensorOver(y, {})};
  ASSERT_EQ(session.run({tensorOver(x, {1, 4}), tensorOver(z, {1})}, outputs), "");
  EXPECT_EQ(y, (std::vector<float>{2, 3, 4, 5, -1}));
  EXPECT_EQ(outputs[0].owner, nullptr);
  EXPECT_EQ(outputs[0].bytes, 20);
}

TEST(Session, TellsShapesBeforeARun) {
  TestSession session(twisted_executable);
  std::vector<float> x(5);
  std::vector<heddle_string_t> picks(5);
  heddle_tensor_t inputs[] = {tensorOver(x, {5}), tensorOver(picks, {5})}, outputs[2] = {};
  inputs[0].data = nullptr;
  ASSERT_EQ(take(heddle_session_output_shapes(session.handle, inputs, 2, outputs, 2)), "");
  EXPECT_EQ(outputs[0].dims[0], HEDDLE_UNKNOWN);
  EXPECT_EQ(outputs[0].bytes, HEDDLE_UNKNOWN);
  EXPECT_EQ(outputs[1].dims[0], 5);
  EXPECT_EQ(outputs[1].bytes, HEDDLE_UNKNOWN);
  EXPECT_EQ(outputs[1].dtype, HEDDLE_STRING);
}

struct Twisted : testing::Test {
  TestSession session{twisted_executable};
  std::vector<float> x = {1, -2, 3}, small = {0}, large = std::vector<float>(9);
  std::vector<heddle_string_t> picks = {{"cat", 3}, {"cow", 3}, {"dogs", 3}};
  std::vector<heddle_tensor_t> outputs = std::vector<heddle_tensor_t>(2);

  std::string run(heddle_code_t *code = nullptr) {
    return session.run({tensorOver(x, {3}), tensorOver(picks, {3})}, outputs, code);
  }
  void TearDown() override {
    for (heddle_tensor_t &output : outputs)
      heddle_tensor_release(&output);
  }
};

TEST_F(Twisted, AllocatesWhatOnlyTheRunCanTell) {
  ASSERT_EQ(run(), "");
  EXPECT_EQ(outputs[0].dims[0], 2);
  EXPECT_EQ(static_cast<float *>(outputs[0].data)[1], 3);
  auto *names = static_cast<heddle_string_t *>(outputs[1].data);
  for (auto [i, name] : {std::pair{0, "dog"}, {1, "cow"}, {2, "dog"}})
    EXPECT_EQ(std::string(names[i].data, names[i].size), name);
}

TEST_F(Twisted, UsesTheCallersBufferWhenItFits) {
  outputs[0] = tensorOver(large, {});
  ASSERT_EQ(run(), "");
  EXPECT_EQ(large[1], 3);
  EXPECT_EQ(outputs[0].dims[0], 2);
}

TEST_F(Twisted, SaysWhenTheCallersBufferIsTooSmall) {
  outputs[0] = tensorOver(small, {});
  EXPECT_EQ(run(), "model 'twisted': output 'positive': its buffer has 4 bytes, but it needs 8; "
                   "pass NULL to have it allocated");
  EXPECT_EQ(outputs[1].data, nullptr);
}

TEST_F(Twisted, ReportsTheModelsOwnFailure) {
  x[2] = std::numeric_limits<float>::quiet_NaN();
  heddle_code_t code;
  EXPECT_EQ(run(&code), "model 'twisted': element 2 of 'x' is not a number (100% of 3 must be)");
  EXPECT_EQ(code, HEDDLE_USAGE);
  EXPECT_EQ(outputs[1].data, nullptr);
}

// Sanitizers end the process instead of failing such an allocation.
#ifndef HEDDLE_SANITIZED
TEST_F(Twisted, OutOfMemoryIsAStatus) {
  x[0] = 2e30f;
  heddle_code_t code;
  EXPECT_NE(run(&code).find("out of memory: 70368744177"), std::string::npos);
  EXPECT_EQ(code, HEDDLE_LIMIT);
}
#endif

/// Large enough that its memory is kept: 400,000 bytes.
constexpr int64_t kLargeBatch = 25000;

heddle_tensor_t runIncrement(TestSession &session, int64_t batch) {
  std::vector<float> x = ramp(static_cast<size_t>(batch) * 4), z = ramp(static_cast<size_t>(batch));
  std::vector<heddle_tensor_t> outputs(1);
  EXPECT_EQ(session.run({tensorOver(x, {batch, 4}), tensorOver(z, {batch})}, outputs), "");
  return outputs[0];
}

TEST(Session, UsesReleasedResultsAgain) {
  TestSession session(increment_executable);
  heddle_tensor_t first = runIncrement(session, kLargeBatch);
  EXPECT_EQ(heddle_session_memory(session.handle).kept_bytes, 0);
  void *memory = first.data;
  heddle_tensor_release(&first);
  EXPECT_GE(heddle_session_memory(session.handle).kept_bytes, kLargeBatch * 16);
  heddle_tensor_t second = runIncrement(session, kLargeBatch + 500); // a size of the same class
  EXPECT_EQ(second.data, memory);
  heddle_tensor_t third = runIncrement(session, kLargeBatch), small = runIncrement(session, 9);
  EXPECT_NE(third.data, memory);
  for (heddle_tensor_t *result : {&second, &third, &small})
    heddle_tensor_release(result);
  int64_t kept = heddle_session_memory(session.handle).kept_bytes;
  EXPECT_GE(kept, kLargeBatch * 16); // one run's: what more is released goes
  EXPECT_LT(kept, kLargeBatch * 32);
}

TEST(Session, ResultsOutliveTheirSession) {
  heddle_tensor_t result;
  {
    TestSession session(increment_executable);
    result = runIncrement(session, kLargeBatch);
  }
  EXPECT_EQ(static_cast<float *>(result.data)[5], 7);
  heddle_tensor_release(&result);
}

TEST(Session, EightThreadsShareAModuleAndASession) {
  TestSession shared(increment_executable, 2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&shared, i] {
      TestSession own(increment_executable, 1 + i % 2);
      for (int64_t round = 0; round < 50; ++round) {
        checkIncrement(shared, 1 + (round * 7 + i) % 40);
        checkIncrement(own, 1 + round % 5);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  heddle_memory_t memory = heddle_session_memory(shared.handle);
  EXPECT_GE(memory.peak_bytes, memory.held_bytes);
  EXPECT_GE(memory.held_bytes, memory.arena_bytes);
}

TEST(Session, MemoryIsCounted) {
  TestSession session(increment_executable);
  checkIncrement(session, 1000);
  heddle_memory_t memory = heddle_session_memory(session.handle);
  EXPECT_EQ(memory.arena_bytes, 4000);
  EXPECT_EQ(memory.scratch_bytes, 64);
  EXPECT_EQ(memory.held_bytes, 4064);
  checkIncrement(session, 10);
  memory = heddle_session_memory(session.handle);
  EXPECT_EQ(memory.arena_bytes, 40);
  EXPECT_EQ(memory.held_bytes, 4064);
  EXPECT_EQ(memory.peak_bytes, 4064);
}

TEST(Session, RefusesWrongOptions) {
  heddle_module_t *module = nullptr;
  heddle_session_t *session = nullptr;
  ASSERT_EQ(take(heddle_module_from_executable(&increment_executable, nullptr, nullptr, &module)),
            "");
  heddle_session_options_t options = {sizeof options, -1, nullptr, nullptr, nullptr};
  EXPECT_NE(take(heddle_session_create(module, &options, &session)).find("threads is -1"),
            std::string::npos);
  options.size = 3;
  EXPECT_NE(take(heddle_session_create(module, &options, &session)).find("size is 3"),
            std::string::npos);
  EXPECT_EQ(session, nullptr);
  heddle_module_destroy(module);
}

TEST(Session, DenormalsAreZeroInARunAndComeBack) {
  TestSession session(increment_executable);
  volatile float denormal = 1e-40f;
  std::vector<float> x(4, 0.f), z = {-1.f}, y(4, 9.f);
  x[0] = denormal; // 1e-40 + (-1 + 1) would be 1e-40 if denormals lived
  std::vector<heddle_tensor_t> outputs = {tensorOver(y, {})};
  ASSERT_EQ(session.run({tensorOver(x, {1, 4}), tensorOver(z, {1})}, outputs), "");
  EXPECT_EQ(y[0], 0.f);
  EXPECT_GT(denormal * 1.f, 0.f);
}

} // namespace
