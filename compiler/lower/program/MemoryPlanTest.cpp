// Buffers that are alive together never overlap, whatever their sizes turn out to be.

#include "compiler/lower/program/MemoryPlan.h"

#include <gtest/gtest.h>
#include <random>

using namespace heddle;
using namespace heddle::lower;
using graph::Dim;

namespace {

int64_t arenaOf(const std::vector<int64_t> &offsets, const std::vector<int64_t> &bytes) {
  int64_t end = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    end = std::max(end, offsets[i] + bytes[i]);
  return end;
}

int64_t typicalSize(const Dim &bytes) {
  return bytes.evaluate([](llvm::StringRef) { return std::optional<int64_t>(64); }).value_or(0);
}

TEST(MemoryPlan, AChainOfBuffersTakesTwo) {
  std::vector<Buffer> buffers;
  for (int64_t i = 0; i < 10; ++i)
    buffers.push_back({Dim::symbol("n") * Dim(256), i, i + 1});
  std::vector<int64_t> bytes(10, 1000 * 256);
  EXPECT_EQ(arenaOf(planMemory(buffers, typicalSize).offsets(bytes), bytes), 2 * 1000 * 256);
}

TEST(MemoryPlan, SmallBuffersShareTheRoomOfALargeOne) {
  Dim n = Dim::symbol("n");
  std::vector<Buffer> buffers = {{n * Dim(1024), 0, 1}, {n * Dim(512), 2, 4}, {n * Dim(512), 3, 5}};
  std::vector<int64_t> bytes = {7 * 1024, 7 * 512, 7 * 512};
  EXPECT_EQ(arenaOf(planMemory(buffers, typicalSize).offsets(bytes), bytes), 7 * 1024);
}

TEST(MemoryPlan, ArenasOfTwoSpacesBothBeginAtZero) {
  Dim n = Dim::symbol("n");
  std::vector<Buffer> buffers = {{n, 0, 3, 0}, {n, 0, 3, 1}, {n, 1, 2, 1}};
  EXPECT_EQ(planMemory(buffers, typicalSize).offsets({64, 128, 256}),
            (std::vector<int64_t>{0, 0, 128}));
}

TEST(MemoryPlan, NothingAliveOverlapsWhateverTheSizes) {
  std::mt19937 random(7);
  auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  for (int round = 0; round < 200; ++round) {
    Dim symbols[] = {Dim::symbol("a"), Dim::symbol("b"), Dim(1)};
    std::vector<Buffer> buffers;
    for (int64_t count = below(60); count > 0; --count) {
      int64_t first = below(40);
      Dim size = symbols[below(3)] * symbols[below(3)] * Dim(below(200));
      buffers.push_back({size.floorDiv(Dim(1 + below(3))), first, first + below(10)});
    }
    MemoryPlan plan = planMemory(buffers, typicalSize);
    for (int trial = 0; trial < 5; ++trial) {
      int64_t a = below(300), b = below(3);
      std::vector<int64_t> bytes;
      for (const Buffer &buffer : buffers)
        bytes.push_back(*buffer.bytes.evaluate(
            [&](llvm::StringRef name) { return std::optional(name == "a" ? a : b); }));
      std::vector<int64_t> offsets = plan.offsets(bytes);
      for (size_t i = 0; i < bytes.size(); ++i) {
        EXPECT_EQ(offsets[i] % kAlignment, 0);
        for (size_t j = 0; j < i; ++j) {
          bool areApart = buffers[i].last < buffers[j].first || buffers[j].last < buffers[i].first;
          EXPECT_TRUE(areApart || offsets[i] + bytes[i] <= offsets[j] ||
                      offsets[j] + bytes[j] <= offsets[i])
              << round << ": " << i << " and " << j;
        }
      }
    }
  }
}

} // namespace
