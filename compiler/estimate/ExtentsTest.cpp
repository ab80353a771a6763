// ExtentsTest: extents of products, tasks, seconds, and whose thresholds count.

#include "compiler/mechanism/Extents.h"
#include "compiler/estimate/Seconds.h"
#include "compiler/estimate/Sharing.h"
#include "compiler/estimate/Thresholds.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;
using graph::Dim;

namespace {

class Extents : public testing::Test {
protected:
  Extents() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  /// The op that makes `result` of `x` and `w`.
  Operation *opOf(const std::string &op, const std::string &x, const std::string &w,
                  const std::string &result) {
    std::string text = "func.func @main(%x: tensor<" + x + ">, %w: tensor<" + w + ">) -> tensor<" +
                       result + "> {\n%y = " + op + " : (tensor<" + x + ">, tensor<" + w +
                       ">) -> tensor<" + result + ">\nreturn %y : tensor<" + result + ">\n}";
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return &module->lookupSymbol<func::FuncOp>("main").getBody().front().front();
  }
  static std::string textOf(const mechanism::Extents &extents) {
    std::string text;
    for (const Dim &each :
         {extents.batches, extents.rows, extents.columns, extents.depth, extents.taps})
      text += (text.empty() ? "" : " ") + each.str();
    return text;
  }
  static std::string conv(const std::string &stride, const std::string &border, int groups) {
    return "graph.conv %x, %w {strides = array<i64: " + stride + ", " + stride +
           ">, dilations = array<i64: 1, 1>, low = array<i64: " + border + ", " + border +
           ">, high = array<i64: " + border + ", " + border +
           ">, channels_last = true, groups = " + std::to_string(groups) + "}";
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Extents, batchesWithOneRightOperandAreRows) {
  auto extents = mechanism::extentsOfProduct(
      opOf("graph.matmul %x, %w", "5x2x3xf32", "1x3x4xf32", "5x2x4xf32"));
  EXPECT_EQ(textOf(extents), "1 10 4 3 1");
  extents = mechanism::extentsOfProduct(
      opOf("graph.matmul %x, %w", "5x2x3xf32", "5x3x4xf32", "5x2x4xf32"));
  EXPECT_EQ(textOf(extents), "5 2 4 3 1");
}

TEST_F(Extents, sizesOfAProductKeepTheirNames) {
  auto extents =
      mechanism::extentsOfProduct(opOf("graph.matmul %x, %w", "?x2x3xf32, #graph.dims<\"n\", 2, 3>",
                                       "1x3x4xf32", "?x2x4xf32, #graph.dims<\"n\", 2, 4>"));
  EXPECT_EQ(textOf(extents), "1 2*n 4 3 1");
}

TEST_F(Extents, aWindowHasTheRowsOfOneLineAndAPixelThoseOfAllImages) {
  auto extents = mechanism::extentsOfProduct(
      opOf(conv("1", "1", 2), "3x7x9x4xf32", "6x2x3x3xf32", "3x7x9x6xf32"));
  EXPECT_EQ(textOf(extents), "42 9 3 18 9");
  extents = mechanism::extentsOfProduct(
      opOf(conv("1", "0", 1), "3x7x9x4xf32", "6x4x1x1xf32", "3x7x9x6xf32"));
  EXPECT_EQ(textOf(extents), "1 189 6 4 1");
}

/// The tasks cover all tiles and panels, by symbols as by numbers.
TEST_F(Extents, tasksCoverAllTilesAndPanels) {
  program::Machine machine;
  for (int64_t workers : {1, 2, 16})
    for (int64_t tiles : {1, 7, 100, 5000})
      for (int64_t panels : {1, 3, 48}) {
        machine.workers = workers;
        estimate::Sharer sharer(nullptr, {}, machine);
        int64_t most = sharer.mostPanels(10000, Dim(panels));
        auto known = sharer.share(Dim(tiles), Dim(panels), most);
        auto named = sharer.share(Dim::symbol("t"), Dim::symbol("p"), most);
        auto value = [&](const Dim &dim) {
          return *dim.evaluate(
              [&](StringRef name) { return std::optional<int64_t>(name == "t" ? tiles : panels); });
        };
        EXPECT_GE(value(known.chunk) * value(known.chunks), panels);
        EXPECT_GE(value(known.block) * value(known.blocks), tiles);
        EXPECT_LE(value(known.chunk), most);
        for (auto member : {&estimate::Sharing::chunk, &estimate::Sharing::chunks,
                            &estimate::Sharing::block, &estimate::Sharing::blocks})
          EXPECT_EQ(value(known.*member), value(named.*member));
      }
}

TEST_F(Extents, knobsDecideBeforeRules) {
  program::Machine machine;
  estimate::Sharer sharer(nullptr, {{"panels", 2}, {"tiles", 5}}, machine);
  EXPECT_EQ(sharer.mostPanels(1, Dim(48)), 2);
  EXPECT_EQ(sharer.share(Dim(1000), Dim(48), Dim(2)).block, Dim(5));
}

/// Few panels at a time are for rows that the L2 holds.
TEST_F(Extents, rowsFromFurtherAwayMeetMorePanels) {
  program::Machine machine;
  estimate::Sharer sharer(nullptr, {{"panels", 1}}, machine);
  Dim most = sharer.mostPanels(machine.l2Bytes / 16, Dim(48), Dim::symbol("bytes"));
  auto of = [&](int64_t bytes) {
    return *most.evaluate([&](StringRef) { return std::optional(bytes); });
  };
  EXPECT_EQ(of(0), 1);
  EXPECT_EQ(of(machine.l2Bytes / 2), 1);
  EXPECT_EQ(of(machine.l2Bytes / 2 + 1), 6);
  EXPECT_EQ(of(int64_t(1) << 40), 6);
}

TEST_F(Extents, aPlanSetsAThresholdBeforeTheTargetAndThisBeforeTheTable) {
  opOf("graph.matmul %x, %w", "2x3xf32", "3x4xf32", "2x4xf32");
  program::Machine machine;
  auto values = [&] {
    return std::pair(estimate::thresholdAt(*module, estimate::kProductTasks),
                     estimate::thresholdAt(*module, estimate::kProductTiles));
  };
  EXPECT_EQ(values(), std::pair(estimate::kProductTasks.value, estimate::kProductTiles.value));
  machine.thresholds = {{"product_tasks", 32}, {"product_tiles", 2}};
  estimate::setThresholds(*module, machine, {{"product_tiles", 3}});
  EXPECT_EQ(values(), (std::pair<int64_t, int64_t>(32, 3)));
  machine.thresholds.clear();
  estimate::setThresholds(*module, machine, {});
  EXPECT_EQ(values(), std::pair(estimate::kProductTasks.value, estimate::kProductTiles.value));
}

TEST_F(Extents, aKernelTakesItsStartAndTheSlowerOfArithmeticAndMemory) {
  program::Machine machine;
  machine.rates = {100, 10, 1000, 3};
  Operation *product = opOf("graph.matmul %x, %w", "2x3xf32", "3x4xf32", "2x4xf32");
  auto work = estimate::workOf(product, product->getResults(), [](const Dim &size) {
    return static_cast<double>(size.constant().value_or(-1));
  });
  EXPECT_EQ(work.products, 2 * 2 * 3 * 4);
  EXPECT_EQ(work.others, 0);
  EXPECT_EQ(work.bytes, 4 * (2 * 3 + 3 * 4 + 2 * 4));
  EXPECT_DOUBLE_EQ(estimate::secondsOf(work, machine), 3 + 48 / 100.0);
  machine.rates.bytes = 1;
  EXPECT_DOUBLE_EQ(estimate::secondsOf(work, machine), 3 + 104);
}

} // namespace
