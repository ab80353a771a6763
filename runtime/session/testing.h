// testing.h: a session over a hand-written executable, and tensors over vectors, for tests.
// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_SESSION_TESTING_H
#define HEDDLE_SESSION_TESTING_H

#include "heddle/runtime.h"
#include "runtime/executable/testing/executables.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

template <typename T> constexpr int32_t kDtype = 0;
template <> inline constexpr int32_t kDtype<float> = HEDDLE_FLOAT32;
template <> inline constexpr int32_t kDtype<int64_t> = HEDDLE_INT64;
template <> inline constexpr int32_t kDtype<heddle_string_t> = HEDDLE_STRING;
template <> inline constexpr int32_t kDtype<heddle_tensor_t> = HEDDLE_SEQUENCE;

template <typename T>
heddle_tensor_t tensorOver(std::vector<T> &values, std::initializer_list<int64_t> dims) {
  heddle_tensor_t tensor = {};
  tensor.data = values.data();
  tensor.bytes = static_cast<int64_t>(values.size() * sizeof(T));
  tensor.dtype = kDtype<T>;
  for (int64_t dim : dims)
    tensor.dims[tensor.rank++] = dim;
  return tensor;
}

/// Message of a status, which it destroys; "" for success.
inline std::string take(heddle_status_t *status, heddle_code_t *code = nullptr) {
  std::string message = heddle_status_message(status);
  if (code)
    *code = heddle_status_code(status);
  heddle_status_destroy(status);
  return message;
}

struct TestSession {
  explicit TestSession(const heddle_executable_t &executable, int threads = 1,
                       heddle_pool_t *pool = nullptr) {
    heddle_module_t *module = nullptr;
    EXPECT_EQ(take(heddle_module_from_executable(&executable, nullptr, nullptr, &module)), "");
    heddle_session_options_t options = {sizeof options, threads, pool, nullptr, nullptr};
    EXPECT_EQ(take(heddle_session_create(module, &options, &handle)), "");
    heddle_module_destroy(module);
  }
  TestSession(const TestSession &) = delete;
  ~TestSession() { heddle_session_destroy(handle); }

  std::string run(const std::vector<heddle_tensor_t> &inputs, std::vector<heddle_tensor_t> &outputs,
                  heddle_code_t *code = nullptr) {
    return take(
        heddle_session_run(handle, inputs.data(), inputs.size(), outputs.data(), outputs.size()),
        code);
  }

  heddle_session_t *handle = nullptr;
};

#endif
