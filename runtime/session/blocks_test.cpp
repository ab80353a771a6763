// blocks_test: which rows are a block, over all ways to cut small batches. SPDX-License-Identifier:
// Apache-2.0
extern "C" {
#include "runtime/session/blocks.h"
}

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace {

enum { ROWS, WORK, SYMBOLS };
constexpr int64_t kColumns = 3, kMost = 1000;

/// The sum of the lengths, as a program binds it.
int32_t bind(heddle_call_t *call) {
  const auto *lengths = static_cast<const int64_t *>(call->inputs[0]);
  call->symbols[WORK] = std::accumulate(lengths, lengths + call->symbols[ROWS], int64_t{0});
  for (int64_t i = 0; i < call->symbols[ROWS]; ++i)
    if (lengths[i] > kMost)
      call->status = 1;
  return call->status;
}

/// A call with inputs lengths [rows] and weights [3], and an output [rows, 3] of float.
class Batch {
public:
  explicit Batch(std::vector<int64_t> of) : lengths(std::move(of)), y(lengths.size() * kColumns) {
    executable.input_count = 2;
    executable.output_count = 1;
    executable.symbol_count = SYMBOLS;
    executable.inputs = inputs;
    executable.outputs = &output;
    executable.bind = bind;
    executable.row_symbol = ROWS;
    executable.row_work = WORK;
    executable.row_block = 100;
    tensors[0].dims[0] = symbols[ROWS] = static_cast<int64_t>(lengths.size());
    tensors[1].dims[0] = kColumns;
    outputDims[0] = symbols[ROWS];
    workspace.symbols = symbols;
    workspace.output_dims = outputDims;
    workspace.inputs = data;
    workspace.outputs = results;
    workspace.rows = {ofBlock, dimsOfBlock, dataOfBlock, resultsOfBlock};
    call.inputs = data;
    call.symbols = symbols;
    call.thread_count = 1;
    bind(&call);
  }

  int64_t count(int64_t arenaBytes) { return heddle_blocks_count(&call, &executable, arenaBytes); }

  /// The rows of each block, which follow one another.
  std::vector<std::vector<int64_t>> cut(int64_t count) {
    heddle_blocks_t blocks = heddle_blocks_of(&call, &executable, &workspace, tensors, count);
    std::vector<std::vector<int64_t>> found;
    int64_t next = 0;
    while (heddle_blocks_next(&blocks)) {
      int64_t rows = call.symbols[ROWS];
      EXPECT_GT(rows, 0);
      EXPECT_EQ(call.inputs[0], lengths.data() + next);
      EXPECT_EQ(call.inputs[1], weights);
      EXPECT_EQ(call.outputs[0], y.data() + next * kColumns);
      found.emplace_back(lengths.begin() + next, lengths.begin() + next + rows);
      EXPECT_EQ(call.symbols[WORK],
                std::accumulate(found.back().begin(), found.back().end(), int64_t{0}));
      next += rows;
    }
    EXPECT_EQ(symbols[ROWS], static_cast<int64_t>(lengths.size())) << "those of the batch stay";
    if (!call.status)
      EXPECT_EQ(next, symbols[ROWS]);
    return found;
  }

  std::vector<int64_t> lengths;
  std::vector<float> y;
  heddle_call_t call = {};

private:
  static heddle_io_t ioOf(int32_t dtype, int32_t rank, const heddle_io_dim_t *dims) {
    heddle_io_t io = {};
    io.dtype = dtype;
    io.rank = rank;
    io.dims = dims;
    return io;
  }

  heddle_io_dim_t ofRows[2] = {{HEDDLE_DYNAMIC, ROWS, "rows"}, {kColumns, -1, "3"}};
  heddle_io_t inputs[2] = {ioOf(HEDDLE_INT64, 1, ofRows), ioOf(HEDDLE_FLOAT32, 1, ofRows + 1)};
  heddle_io_t output = ioOf(HEDDLE_FLOAT32, 2, ofRows);
  heddle_executable_t executable = {};
  heddle_workspace_t workspace = {};
  heddle_tensor_t tensors[2] = {};
  float weights[kColumns] = {};
  int64_t symbols[SYMBOLS] = {}, outputDims[2] = {0, kColumns};
  int64_t ofBlock[SYMBOLS] = {}, dimsOfBlock[2] = {};
  const void *data[2] = {lengths.data(), weights};
  void *results[1] = {y.data()};
  const void *dataOfBlock[2] = {};
  void *resultsOfBlock[1] = {};
};

TEST(Blocks, AreAsManyAsTheArenaAsks) {
  Batch batch({4, 4, 4});
  EXPECT_EQ(batch.count(0), 0);
  EXPECT_EQ(batch.count(100), 1);
  EXPECT_EQ(batch.count(101), 2);
  EXPECT_EQ(batch.count(10000), 3) << "a block has a row at least";
  batch.call.thread_count = 2;
  EXPECT_EQ(batch.count(200), 1);
  EXPECT_EQ(batch.count(INT64_MAX), 3);
  EXPECT_EQ(Batch({}).count(1000), 0);
}

TEST(Blocks, HaveEqualWork) {
  using Rows = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(Batch({1, 1, 1, 1}).cut(2), (Rows{{1, 1}, {1, 1}}));
  EXPECT_EQ(Batch({9, 1, 1, 1}).cut(2), (Rows{{9}, {1, 1, 1}}));
  EXPECT_EQ(Batch({1, 1, 1, 9}).cut(2), (Rows{{1, 1, 1}, {9}}));
  EXPECT_EQ(Batch({100, 1, 100}).cut(4).size(), 3U) << "a row of two parts is one block";
  EXPECT_EQ(Batch({0, 0, 0}).cut(3), (Rows{{0, 0, 0}}));
  EXPECT_EQ(Batch({}).cut(3), Rows{});
}

TEST(Blocks, HaveEveryRowOnce) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int64_t> lengths(random() % 40);
    for (int64_t &length : lengths)
      length = random() % (random() % 2 ? 100 : 3);
    int64_t count = 1 + random() % 45, longest = 0, all = 0;
    for (int64_t length : lengths) {
      longest = std::max(longest, length);
      all += length;
    }
    Batch batch(lengths);
    auto blocks = batch.cut(count);
    EXPECT_LE(static_cast<int64_t>(blocks.size()), count);
    for (const auto &block : blocks)
      EXPECT_LE(std::accumulate(block.begin(), block.end(), int64_t{0}), all / count + longest + 1);
  }
}

TEST(Blocks, EndWhereALengthIsRefused) {
  Batch batch({5, 5, 5, 5});
  batch.lengths[2] = kMost + 1; // meanwhile
  EXPECT_LT(batch.cut(4).size(), 3U);
  EXPECT_EQ(batch.call.status, 1);
}

} // namespace
