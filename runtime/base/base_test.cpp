// base_test: statuses, text, sizes of tensors. SPDX-License-Identifier: Apache-2.0
#include "runtime/base/status.h"
#include "runtime/base/tensor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

TEST(Status, NullIsSuccess) {
  EXPECT_EQ(heddle_status_code(nullptr), HEDDLE_OK);
  EXPECT_STREQ(heddle_status_message(nullptr), "");
  heddle_status_destroy(nullptr);
}

TEST(Status, KeepsCodeAndMessageOfAnyLength) {
  std::string name(5000, 'x');
  heddle_status_t *status = heddle_status_make(HEDDLE_REFUSED, "no '%s'", name.c_str());
  EXPECT_EQ(heddle_status_code(status), HEDDLE_REFUSED);
  EXPECT_EQ(heddle_status_message(status), "no '" + name + "'");
  heddle_status_destroy(status);
}

TEST(Text, Grows) {
  heddle_text_t text = {};
  for (int i = 0; i < 1000; ++i)
    heddle_text_add(&text, "%d,", i % 10);
  EXPECT_EQ(text.length, 2000u);
  EXPECT_EQ(std::string(text.data).substr(0, 8), "0,1,2,3,");
  heddle_text_free(&text);
  EXPECT_EQ(text.data, nullptr);
}

TEST(Tensor, BytesAreCheckedForOverflow) {
  int64_t dims[] = {3, 5}, empty[] = {0, INT64_C(1) << 40, INT64_C(1) << 40}, unknown[] = {-1, 4};
  int64_t huge[] = {INT64_C(1) << 32, INT64_C(1) << 31}, wrapping[] = {INT64_MAX, INT64_MAX};
  EXPECT_EQ(heddle_tensor_bytes(HEDDLE_FLOAT32, 2, dims), 60);
  EXPECT_EQ(heddle_tensor_bytes(HEDDLE_INT4, 2, dims), 8);
  EXPECT_EQ(heddle_tensor_bytes(HEDDLE_FLOAT64, 0, nullptr), 8);
  EXPECT_EQ(heddle_tensor_bytes(HEDDLE_FLOAT32, 2, unknown), HEDDLE_UNKNOWN);
  EXPECT_EQ(heddle_tensor_bytes(HEDDLE_INT8, 2, huge), HEDDLE_TOO_LARGE);
  EXPECT_EQ(heddle_tensor_bytes(HEDDLE_INT8, 2, wrapping), HEDDLE_TOO_LARGE);
  EXPECT_EQ(heddle_tensor_bytes(HEDDLE_INT8, 3, empty), HEDDLE_TOO_LARGE);
  EXPECT_EQ(heddle_tensor_bytes(HEDDLE_INT8, 1, empty), 0);
}

TEST(Tensor, MemoryIsAlignedAndFailureIsNull) {
  void *memory = heddle_memory_allocate(100), *none = heddle_memory_allocate(0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
  EXPECT_NE(none, nullptr);
  EXPECT_EQ(heddle_memory_allocate(-1), nullptr);
  EXPECT_EQ(heddle_memory_allocate(INT64_MAX), nullptr);
  free(memory);
  free(none);
}

TEST(Dtype, NumbersAreThoseOfOnnx) {
  EXPECT_STREQ(heddle_dtype_name(1), "float32");
  EXPECT_EQ(heddle_dtype_bits(16), 16);
  EXPECT_STREQ(heddle_dtype_name(99), "?");
  EXPECT_EQ(heddle_dtype_bits(-1), 0);
}
