// Traffic_test: the formulas against multiply-adds that are counted one by one.

#include "compiler/estimate/Traffic.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;

namespace {

class Traffic : public testing::Test {
protected:
  Traffic() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  /// Operations of the one op that makes `result` of an image and its filters, or of two matrices.
  double flopsOf(const std::string &op, const std::string &x, const std::string &w,
                 const std::string &result) {
    std::string text = "func.func @main(%x: tensor<" + x + ">, %w: tensor<" + w + ">) -> tensor<" +
                       result + "> {\n%y = " + op + " : (tensor<" + x + ">, tensor<" + w +
                       ">) -> tensor<" + result + ">\nreturn %y : tensor<" + result + ">\n}";
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module ? estimate::productFlops(*module) : -1;
  }

  MLIRContext context;
};

TEST_F(Traffic, aProductIsTwoPerMultiplyAdd) {
  EXPECT_EQ(flopsOf("graph.matmul %x, %w", "5x2x3xf32", "5x3x4xf32", "5x2x4xf32"),
            2 * 5 * 2 * 3 * 4);
}

TEST_F(Traffic, aConvolutionReadsItsWindowForEachPixelOfTheResult) {
  EXPECT_EQ(flopsOf("graph.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, "
                    "low = array<i64: 0, 0>, high = array<i64: 0, 0>, groups = 2}",
                    "1x6x9x9xf32", "8x3x3x3xf32", "1x8x4x4xf32"),
            2 * (8 * 4 * 4) * (3 * 3 * 3));
}

/// Each element of x is multiplied by each filter that reads it, once for each place of the window,
/// whatever the stride.
TEST_F(Traffic, aTransposedConvolutionWritesItsWindowForEachPixelOfTheImage) {
  EXPECT_EQ(flopsOf("graph.conv_transpose %x, %w {strides = array<i64: 2, 2>, "
                    "dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, "
                    "high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>}",
                    "1x16x5x7xf32", "16x17x2x2xf32", "1x17x10x14xf32"),
            2 * (16 * 5 * 7) * (17 * 2 * 2));
}

TEST_F(Traffic, aGradientOfFiltersMeetsEveryPixelOfTheResultInEachPlace) {
  EXPECT_EQ(flopsOf("graph.conv_filter_gradient %x, %w {strides = array<i64: 2, 2>, "
                    "dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, "
                    "high = array<i64: 0, 0>, groups = 2}",
                    "2x6x9x9xf32", "2x8x4x4xf32", "8x3x3x3xf32"),
            2 * (8 * 3 * 3 * 3) * (2 * 4 * 4));
}

TEST_F(Traffic, sizesThatOnlyTheRunKnowsCountNothing) {
  EXPECT_EQ(flopsOf("graph.matmul %x, %w", "?x3xf32, #graph.dims<\"n\", 3>", "3x4xf32",
                    "?x4xf32, #graph.dims<\"n\", 4>"),
            0);
}

} // namespace
