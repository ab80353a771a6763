// OpFuzzTest: a fixed number of random ops through what libFuzzer runs; see OpFuzz.cpp.

#include <gtest/gtest.h>

#include <random>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

TEST(OpFuzz, RandomOps) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bytes(random() % 64);
    for (uint8_t &byte : bytes)
      byte = random();
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); // ends the process at a finding
  }
}
