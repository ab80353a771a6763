// ShapesTest: products that register tiles serve, rows of reductions, and windows with channels in
// lanes; and why others are refused.

#include "compiler/mechanism/Shapes.h"
#include "compiler/mechanism/Product.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;
using mechanism::Fit;

namespace {

class Shapes : public testing::Test {
protected:
  Shapes() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  /// The ops of a function, and what it returns.
  void parse(const Twine &function) {
    module = parseSourceString<ModuleOp>((kTypes + "func.func @main" + function).str(), &context);
    ASSERT_TRUE(module) << function.str();
    Block &body = (*module->getOps<func::FuncOp>().begin()).getBody().front();
    ops.clear();
    for (Operation &op : body.without_terminator())
      ops.push_back(&op);
    results.assign(body.getTerminator()->operand_begin(), body.getTerminator()->operand_end());
  }

  static constexpr StringLiteral kTypes = R"(
!x = tensor<?x24xf32, #graph.dims<"n", 24>>
!w = tensor<24x60xf32>
!s = tensor<?x60xf32, #graph.dims<"n", 60>>
!c = tensor<?x20xf32, #graph.dims<"n", 20>>
!r = tensor<?x1xf32, #graph.dims<"n", 1>>
!v = tensor<?xf32, #graph.dims<"n">>
!i = tensor<?x?x?x8xf32, #graph.dims<"n", "h", "w", 8>>
)";

  /// The reason without the places of ops: "matmul '-:11'" is "matmul".
  std::string reason() const {
    std::string text = why;
    for (size_t at; (at = text.find(" '-:")) != std::string::npos;)
      text.erase(at, text.find('\'', at + 2) + 1 - at);
    return text;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  SmallVector<Operation *> ops;
  SmallVector<Value> results;
  std::string why;
};

class Products : public Shapes {
protected:
  std::optional<mechanism::Product> read(const Twine &function) {
    parse(function);
    return mechanism::readProduct(ops, results, why);
  }
};

TEST_F(Products, haveMembersThatTheirResultsFollowFrom) {
  auto product = read(R"((%x: !x, %w: !w, %y: !s) -> !s {
    %p = graph.matmul %x, %w : (!x, !w) -> !s
    %apart = graph.tanh %y : !s
    %z = graph.add %p, %y : !s
    return %z : !s })");
  ASSERT_TRUE(product) << why;
  EXPECT_TRUE(isa<graph::MatmulOp>(product->root));
  EXPECT_EQ(product->members.size(), 2u);
  EXPECT_EQ(product->parts, 1);
  EXPECT_TRUE(product->partColumns.isConstant(60));
}

static std::string parted(int64_t second, const Twine &rest) {
  return (R"((%x: !x, %w: !w) -> !c {
    %p = graph.matmul %x, %w : (!x, !w) -> !s
    %a = graph.slice %p {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (!s) -> !c
    %b = graph.slice %p {starts = #graph.dims<0, )" +
          Twine(second) + R"(>, steps = array<i64: 1, 1>} : (!s) -> !c
    %z = graph.mul %a, %b : !c
)" + rest)
      .str();
}

TEST_F(Products, areReadInEqualParts) {
  auto product = read(parted(40, "return %z : !c }"));
  ASSERT_TRUE(product) << why;
  EXPECT_EQ(product->parts, 3);
  EXPECT_EQ(product->slices.size(), 2u);
  EXPECT_TRUE(product->partColumns.isConstant(20));
  EXPECT_FALSE(read(parted(30, "return %z : !c }")));
  EXPECT_EQ(reason(), "slices of the product are not equal parts of its columns");
}

TEST_F(Products, areOne) {
  EXPECT_FALSE(read(R"((%x: !x, %w: !w) -> !s {
    %p = graph.matmul %x, %w : (!x, !w) -> !s
    %q = graph.matmul %x, %w : (!x, !w) -> !s
    %z = graph.add %p, %q : !s
    return %z : !s })"));
  EXPECT_NE(reason().find("is a second product"), std::string::npos) << why;
  EXPECT_FALSE(read("(%y: !s) -> !s {\n %z = graph.tanh %y : !s\n return %z : !s }"));
  EXPECT_EQ(reason(), "no result follows from a product");
}

TEST_F(Products, readTheirLeftOperandFromMemory) {
  EXPECT_FALSE(read(R"((%x: !x, %w: !w) -> !s {
    %e = graph.exp %x : !x
    %p = graph.matmul %e, %w : (!x, !w) -> !s
    return %p : !s })"));
  EXPECT_EQ(reason(), "the left operand of matmul is computed in the group, and is read often");
}

TEST_F(Products, ofOneRowReadTheirMatricesOnce) {
  auto isOneRow = [&](const Twine &a, const Twine &b, const Twine &c) {
    auto product = read("(%a: tensor<" + a + ">, %b: tensor<" + b + ">) -> tensor<" + c +
                        "> {\n %p = graph.matmul %a, %b : (tensor<" + a + ">, tensor<" + b +
                        ">) -> tensor<" + c + ">\n return %p : tensor<" + c + "> }");
    EXPECT_TRUE(product) << why;
    return product && product->isOneRow;
  };
  EXPECT_TRUE(isOneRow("1x9xf32", "9x7xf32", "1x7xf32"));
  EXPECT_TRUE(isOneRow("5x1x9xf32", "5x9x7xf32", "5x1x7xf32"));
  EXPECT_FALSE(isOneRow("5x1x9xf32", "1x9x7xf32", "5x1x7xf32")); // all rows share the matrix
  EXPECT_FALSE(isOneRow("2x9xf32", "9x7xf32", "2x7xf32"));
}

TEST_F(Products, areFollowedElementByElement) {
  EXPECT_FALSE(read(R"((%x: !x, %w: !w) -> !r {
    %p = graph.matmul %x, %w : (!x, !w) -> !s
    %z = graph.reduce_sum %p {axes = array<i64: 1>, keep_dims = true} : (!s) -> !r
    return %z : !r })"));
  EXPECT_EQ(reason(), "a result has another shape than the product");
  EXPECT_FALSE(read(R"((%x: !x, %w: !w) -> !s {
    %p = graph.matmul %x, %w : (!x, !w) -> !s
    %z = graph.reduce_sum %p {axes = array<i64: 1>, keep_dims = true} : (!s) -> !r
    %zs = graph.broadcast %z : (!r) -> !s
    return %zs : !s })"));
  EXPECT_EQ(reason(), "reduce_sum is not computed element by element");
}

class RowShapes : public Shapes {
protected:
  std::optional<mechanism::Rows> read(const Twine &function) {
    parse(function);
    return mechanism::readRows(ops, results, why);
  }
};

TEST_F(RowShapes, areThoseThatAllReductionsFold) {
  auto rows = read(R"((%y: !s) -> (!s, !v) {
    %m = graph.reduce_max %y {axes = array<i64: 1>, keep_dims = true} : (!s) -> !r
    %ms = graph.broadcast %m : (!r) -> !s
    %z = graph.sub %y, %ms : !s
    %t = graph.reduce_sum %z {axes = array<i64: 1>} : (!s) -> !v
    return %z, %t : !s, !v })");
  ASSERT_TRUE(rows) << why;
  EXPECT_EQ(rows->reductions.size(), 2u);
  EXPECT_EQ(rows->kept, 1u);
  EXPECT_TRUE(rows->full.back().isConstant(60));
}

TEST_F(RowShapes, areFoldedAlongTheLastDimensionsOfOneShape) {
  EXPECT_FALSE(read(R"((%y: !s) -> tensor<60xf32> {
    %t = graph.reduce_sum %y {axes = array<i64: 0>} : (!s) -> tensor<60xf32>
    return %t : tensor<60xf32> })"));
  EXPECT_NE(reason().find("reduce_sum does not"), std::string::npos) << why;
  EXPECT_FALSE(read(R"((%y: !s, %c: !c) -> !v {
    %t = graph.reduce_sum %y {axes = array<i64: 1>} : (!s) -> !v
    %u = graph.reduce_sum %c {axes = array<i64: 1>} : (!c) -> !v
    %z = graph.add %t, %u : !v
    return %z : !v })"));
  EXPECT_NE(reason().find("other dimensions than the"), std::string::npos) << why;
  EXPECT_FALSE(read("(%y: !s) -> !s {\n %z = graph.tanh %y : !s\n return %z : !s }"));
  EXPECT_FALSE(why.empty());
}

TEST_F(RowShapes, haveResultsThatAreRowsOrNumbersOfRows) {
  EXPECT_FALSE(read(R"((%y: !s, %c: !c) -> (!v, !c) {
    %t = graph.reduce_sum %y {axes = array<i64: 1>} : (!s) -> !v
    %z = graph.tanh %c : !c
    return %t, %z : !v, !c })"));
  EXPECT_EQ(reason(), "a result is neither a row nor a number for each row");
}

class Windows : public Shapes {
protected:
  Fit fit(const Twine &function) {
    parse(function);
    mechanism::Verdict verdict = mechanism::kWindow.fits(ops);
    why = verdict.why;
    return verdict.fit;
  }
  static std::string conv(StringRef weights, StringRef groups, StringRef rest) {
    return ("(%x: !i, %w: " + weights + ") -> !i {\n" +
            "%c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,\n" +
            "low = array<i64: 1, 1>, high = array<i64: 1, 1>, " + groups +
            "channels_last = true} : (!i, " + weights + ") -> !i\n" + rest)
        .str();
  }
};

TEST_F(Windows, haveOneChannelAGroup) {
  constexpr StringLiteral kEnd = "return %c : !i }";
  EXPECT_EQ(fit(conv("tensor<8x1x3x3xf32>", "groups = 8, ", kEnd)), Fit::Full) << why;
  EXPECT_EQ(fit(conv("tensor<8x8x3x3xf32>", "", kEnd)), Fit::No);
  EXPECT_EQ(reason(), "conv has more than one channel per group");
}

TEST_F(Windows, areFollowedElementByElement) {
  EXPECT_EQ(fit(conv("tensor<8x1x3x3xf32>", "groups = 8, ",
                     "%z = graph.tanh %c : !i\n return %z : !i }")),
            Fit::Full)
      << why;
  EXPECT_EQ(fit(conv("tensor<8x1x3x3xf32>", "groups = 8, ", R"(
    %d = graph.conv %c, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      low = array<i64: 1, 1>, high = array<i64: 1, 1>, groups = 8, channels_last = true}
      : (!i, tensor<8x1x3x3xf32>) -> !i
    return %d : !i })")),
            Fit::No);
  EXPECT_EQ(reason(), "conv is a second window");
}

TEST_F(Windows, areReadFromMemoryAndNeedAWindow) {
  EXPECT_EQ(fit("(%x: !i) -> !i {\n %z = graph.tanh %x : !i\n return %z : !i }"), Fit::Partial);
  EXPECT_EQ(fit(R"((%y: !i) -> !i {
    %x = graph.exp %y : !i
    %p = graph.pool %x {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 1, 1>,
      dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>,
      channels_last = true} : (!i) -> !i
    return %p : !i })"),
            Fit::No);
  EXPECT_EQ(reason(), "the image of pool is computed in the group, and is read often");
  EXPECT_EQ(fit(R"((%x: !i) -> !i {
    %p = graph.pool %x {kind = "max", window = array<i64: 9, 9>, strides = array<i64: 1, 1>,
      dilations = array<i64: 1, 1>, low = array<i64: 4, 4>, high = array<i64: 4, 4>,
      channels_last = true} : (!i) -> !i
    return %p : !i })"),
            Fit::No);
  EXPECT_EQ(reason(), "the window of pool is too large");
}

} // namespace
