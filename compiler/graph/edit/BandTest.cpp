// band_test: masks by their ops and as constants, and masks that are no bands.

#include "compiler/graph/edit/Band.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
namespace graph = heddle::graph;
using graph::Band;
using graph::Dim;

namespace {

class BandTest : public testing::Test {
protected:
  BandTest() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  /// The band of %m, a mask of 4 x 5 or, with a batch of 3, of 3 x 4 x 5.
  std::optional<Band> bandOf(StringRef ops) {
    std::string text = ("func.func @main(%n: tensor<4x5xi64>) {\n"
                        "%i = graph.iota {axis = 0} : () -> tensor<4x5xi64>\n"
                        "%j = graph.iota {axis = 1} : () -> tensor<4x5xi64>\n"
                        "%two = graph.constant dense<2> : tensor<4x5xi64>\n" +
                        ops + "\nreturn }")
                           .str();
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    auto function = *module->getOps<func::FuncOp>().begin();
    return graph::bandOf(function.getBody().front().getTerminator()->getPrevNode()->getResult(0));
  }

  std::optional<Band> compared(StringRef how, StringRef x, StringRef y) {
    return bandOf(("%s = graph.add %i, %two : tensor<4x5xi64>\n%d = graph.sub %j, %i : "
                   "tensor<4x5xi64>\n%m = graph." +
                   how + " %" + x + ", %" + y +
                   " : (tensor<4x5xi64>, tensor<4x5xi64>) -> tensor<4x5xi1>")
                      .str());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(BandTest, Comparisons) {
  EXPECT_EQ(compared("less_equal", "j", "i"), (Band{true, Dim(0)}));
  EXPECT_EQ(compared("less", "j", "i"), (Band{true, Dim(-1)}));
  EXPECT_EQ(compared("greater_equal", "i", "j"), (Band{true, Dim(0)}));
  EXPECT_EQ(compared("greater", "s", "j"), (Band{true, Dim(1)}));
  EXPECT_EQ(compared("less_equal", "i", "j"), (Band{false, Dim(0)}));
  EXPECT_EQ(compared("less", "i", "j"), (Band{false, Dim(1)}));
  EXPECT_EQ(compared("greater_equal", "j", "s"), (Band{false, Dim(2)}));
  EXPECT_EQ(compared("less_equal", "d", "two"), (Band{true, Dim(2)}));
  EXPECT_EQ(compared("greater", "d", "two"), (Band{false, Dim(3)}));
}

TEST_F(BandTest, OtherMasks) {
  EXPECT_EQ(compared("less_equal", "i", "i"), std::nullopt);
  EXPECT_EQ(compared("less_equal", "i", "two"), std::nullopt);
  EXPECT_EQ(compared("less_equal", "n", "i"), std::nullopt);
  EXPECT_EQ(compared("equal", "i", "j"), std::nullopt);
  EXPECT_EQ(compared("less_equal", "d", "i"), std::nullopt); // column <= 2 * row
}

TEST_F(BandTest, SumsThatMayWrap) {
  auto shifted = [&](StringRef number) {
    return bandOf(("%c = graph.constant dense<" + number +
                   "> : tensor<4x5xi64>\n%s = graph.add %i, %c : tensor<4x5xi64>\n"
                   "%u = graph.add %s, %c : tensor<4x5xi64>\n%m = graph.less_equal %j, %u : "
                   "(tensor<4x5xi64>, tensor<4x5xi64>) -> tensor<4x5xi1>")
                      .str());
  };
  EXPECT_EQ(shifted("536870912"), (Band{true, Dim(int64_t(1) << 30)}));
  EXPECT_EQ(shifted("536870913"), std::nullopt);
  EXPECT_EQ(shifted("-9223372036854775808"), std::nullopt);
}

TEST_F(BandTest, ThroughMovement) {
  StringRef lower =
      "%m = graph.less_equal %j, %i : (tensor<4x5xi64>, tensor<4x5xi64>) -> tensor<4x5xi1>\n";
  EXPECT_EQ(
      bandOf((lower + "%b = graph.broadcast %m : (tensor<4x5xi1>) -> tensor<3x4x5xi1>").str()),
      (Band{true, Dim(0)}));
  EXPECT_EQ(bandOf((lower + "%b = graph.not %m : tensor<4x5xi1>").str()), (Band{false, Dim(1)}));
  StringRef slice =
      "%b = graph.slice %m {starts = #graph.dims<1, 3>, steps = array<i64: 1, STEP>} : "
      "(tensor<4x5xi1>) -> tensor<2x1xi1>";
  auto sliced = [&](StringRef step) {
    auto [before, after] = slice.split("STEP");
    return bandOf((lower + before + step + after).str());
  };
  EXPECT_EQ(sliced("1"), (Band{true, Dim(-2)}));
  EXPECT_EQ(sliced("2"), std::nullopt);
  EXPECT_EQ(bandOf("%r = graph.iota {axis = 0} : () -> tensor<4xi64>\n"
                   "%c = graph.iota {axis = 0} : () -> tensor<5xi64>\n"
                   "%u = graph.reshape %r : (tensor<4xi64>) -> tensor<4x1xi64>\n"
                   "%v = graph.broadcast %u : (tensor<4x1xi64>) -> tensor<4x5xi64>\n"
                   "%w = graph.broadcast %c : (tensor<5xi64>) -> tensor<4x5xi64>\n"
                   "%m = graph.less %w, %v : (tensor<4x5xi64>, tensor<4x5xi64>) -> tensor<4x5xi1>"),
            (Band{true, Dim(-1)}));
}

TEST_F(BandTest, Constants) {
  auto constant = [&](int64_t rows, int64_t columns,
                      llvm::function_ref<bool(int64_t, int64_t)> at) {
    std::vector<bool> bits;
    for (int64_t i = 0; i < rows * columns; ++i)
      bits.push_back(at(i / columns, i % columns));
    SmallVector<bool> values(bits.begin(), bits.end());
    auto type = RankedTensorType::get({rows, columns}, IntegerType::get(&context, 1));
    OpBuilder builder(&context);
    OwningOpRef<ModuleOp> holder(ModuleOp::create(builder.getUnknownLoc()));
    builder.setInsertionPointToStart(holder->getBody());
    return graph::bandOf(builder.create<graph::ConstantOp>(
        builder.getUnknownLoc(), DenseElementsAttr::get(type, ArrayRef<bool>(values))));
  };
  for (auto [rows, columns] : {std::pair(4, 5), {5, 4}, {3, 3}, {2, 7}})
    for (int64_t shift = -rows + 1; shift < columns - 1; ++shift) {
      EXPECT_EQ(constant(rows, columns, [&](int64_t i, int64_t j) { return i + shift >= j; }),
                (Band{true, Dim(shift)}));
      EXPECT_EQ(constant(rows, columns, [&](int64_t i, int64_t j) { return i + shift + 1 <= j; }),
                (Band{false, Dim(shift + 1)}));
    }
  EXPECT_EQ(constant(4, 4, [](int64_t, int64_t) { return true; }), std::nullopt);
  EXPECT_EQ(constant(4, 4, [](int64_t i, int64_t j) { return i == j; }), std::nullopt);
  EXPECT_EQ(constant(4, 4, [](int64_t i, int64_t j) { return i >= j && i < 3; }), std::nullopt);
}

TEST_F(BandTest, ItsMaskIsABand) {
  func::FuncOp function;
  bandOf("%m = graph.less %i, %j : (tensor<4x5xi64>, tensor<4x5xi64>) -> tensor<4x5xi1>");
  function = *module->getOps<func::FuncOp>().begin();
  OpBuilder builder(function.getBody().front().getTerminator());
  graph::Build build(builder, function);
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  for (bool isLower : {false, true})
    for (const Dim &shift : {Dim(0), Dim(7), Dim(-3), n - m})
      for (const graph::DimVector &dims :
           {graph::DimVector{Dim(6), Dim(9)}, graph::DimVector{m, n}}) {
        Band band{isLower, shift};
        EXPECT_EQ(graph::bandOf(graph::maskOf(build, dims, band)), band);
      }
}

} // namespace
