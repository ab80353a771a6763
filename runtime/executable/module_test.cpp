// module_test: descriptions of executables, and who owns them. SPDX-License-Identifier: Apache-2.0
#include "heddle/runtime.h"
#include "runtime/executable/testing/executables.h"

#include <gtest/gtest.h>

#include <string>

namespace {

std::string refusal(const heddle_executable_t &executable) {
  heddle_module_t *module = nullptr;
  heddle_status_t *status = heddle_module_from_executable(&executable, nullptr, nullptr, &module);
  std::string message = heddle_status_message(status);
  EXPECT_EQ(heddle_status_code(status), HEDDLE_REFUSED);
  heddle_status_destroy(status);
  return message;
}

} // namespace

TEST(Module, DescribesInputsAndOutputs) {
  heddle_module_t *module = nullptr;
  ASSERT_EQ(heddle_module_from_executable(&twisted_executable, nullptr, nullptr, &module), nullptr);
  EXPECT_STREQ(heddle_module_info(module).model, "twisted");
  ASSERT_EQ(heddle_module_input_count(module), 2u);
  ASSERT_EQ(heddle_module_output_count(module), 2u);
  const heddle_value_t *picks = heddle_module_input(module, 1);
  EXPECT_STREQ(picks->name, "picks");
  EXPECT_EQ(picks->dtype, HEDDLE_STRING);
  EXPECT_EQ(picks->kind, HEDDLE_KIND_TENSOR);
  EXPECT_EQ(picks->dims[0].value, HEDDLE_UNKNOWN);
  EXPECT_STREQ(picks->dims[0].text, "n");
  EXPECT_STREQ(heddle_module_output(module, 0)->dims[0].text, "found");
  EXPECT_EQ(heddle_module_input(module, 2), nullptr);
  EXPECT_EQ(heddle_module_output(module, 2), nullptr);
  heddle_module_destroy(module);
}

TEST(Module, IsReleasedAfterItsLastSession) {
  int released = 0;
  auto release = [](void *data) { ++*static_cast<int *>(data); };
  heddle_module_t *module = nullptr;
  heddle_session_t *session = nullptr;
  ASSERT_EQ(heddle_module_from_executable(&increment_executable, release, &released, &module),
            nullptr);
  ASSERT_EQ(heddle_session_create(module, nullptr, &session), nullptr);
  heddle_module_destroy(module);
  EXPECT_EQ(released, 0);
  heddle_session_destroy(session);
  EXPECT_EQ(released, 1);
}

TEST(Module, RefusesDamagedDescriptions) {
  heddle_executable_t damaged = increment_executable;
  damaged.magic = 1;
  EXPECT_NE(refusal(damaged).find("wrong magic number"), std::string::npos);
  damaged = increment_executable;
  damaged.abi_version = 999;
  EXPECT_NE(refusal(damaged).find("artefact version 999"), std::string::npos);
  damaged = increment_executable;
  damaged.input_count = -1;
  EXPECT_NE(refusal(damaged).find("a count is negative"), std::string::npos);
  damaged = increment_executable;
  damaged.symbol_count = 0;
  EXPECT_NE(refusal(damaged).find("dim 0 of 'x' is neither"), std::string::npos);
  damaged = increment_executable;
  damaged.input_count = 0;
  EXPECT_NE(refusal(damaged).find("symbol 'batch' is the size of no input"), std::string::npos);
}

TEST(Module, NullIsRefused) {
  heddle_module_t *module = nullptr;
  heddle_status_t *status = heddle_module_from_executable(nullptr, nullptr, nullptr, &module);
  EXPECT_EQ(heddle_status_code(status), HEDDLE_USAGE);
  heddle_status_destroy(status);
}
