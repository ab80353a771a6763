// GradientTest: which sets of ops are an attention's gradient, and why others are not.

#include "compiler/mechanism/attention/Gradient.h"

#include "compiler/mechanism/Mechanism.h"

#include "mlir/Parser/Parser.h"

#include "llvm/Support/Regex.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;
using mechanism::Fit;
using Side = mechanism::WeightProduct::Side;

namespace {

constexpr StringLiteral kBegin = R"(
!q = tensor<?x2x?x16xf32, #graph.dims<"b", 2, "s", 16>>
!k = tensor<?x2x?x16xf32, #graph.dims<"b", 2, "t", 16>>
!kt = tensor<?x2x16x?xf32, #graph.dims<"b", 2, 16, "t">>
!qt = tensor<?x2x16x?xf32, #graph.dims<"b", 2, 16, "s">>
!s = tensor<?x2x?x?xf32, #graph.dims<"b", 2, "s", "t">>
!st = tensor<?x2x?x?xf32, #graph.dims<"b", 2, "t", "s">>
!r = tensor<?x2x?x1xf32, #graph.dims<"b", 2, "s", 1>>
!m = tensor<?x?x2x16xf32, #graph.dims<"b", "t", 2, 16>>
func.func @main(%q: !q, %kt: !kt, %k: !k, %vt: !kt, %d: !q, %qt: !qt) -> )";

/// Two products of scores, and of these what the products after them take.
constexpr StringLiteral kRows = R"(
  %scores = graph.matmul %q, %kt : (!q, !kt) -> !s
  %x = graph.reduce_max %scores {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
  %xb = graph.broadcast %x : (!r) -> !s
  %p = graph.sub %scores, %xb : !s
  %dp = graph.matmul %d, %vt : (!q, !kt) -> !s
  %ds = graph.mul %p, %dp : !s
  %dst = graph.transpose %ds {permutation = array<i64: 0, 1, 3, 2>} : (!s) -> !st
)";
constexpr StringLiteral kQueries = "  %dq = graph.matmul %ds, %k : (!s, !k) -> !q\n";
constexpr StringLiteral kKeys = "  %dk = graph.matmul %dst, %q : (!st, !q) -> !k\n";

class AttentionGradient : public testing::Test {
protected:
  AttentionGradient() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  /// All ops of a function with this body.
  SmallVector<Operation *> parse(const Twine &results, const Twine &body) {
    std::string text = (kBegin + results + " {\n" + body + "}\n").str();
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    auto main = module->lookupSymbol<func::FuncOp>("main");
    return llvm::to_vector(llvm::make_pointer_range(main.getBody().front().without_terminator()));
  }
  /// Why these ops are none.
  std::string refusal(const Twine &results, const Twine &body) {
    mechanism::Verdict verdict = mechanism::kAttentionGradient.fits(parse(results, body));
    EXPECT_EQ(verdict.fit, Fit::No);
    return llvm::Regex(" '[^']*'").sub("", verdict.why); // without the name of the node
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(AttentionGradient, hasScoresAndSums) {
  std::string why;
  auto parts = mechanism::readAttentionGradient(
      parse("(!q, !m, !kt)",
            kRows + kQueries + kKeys +
                "  %m = graph.transpose %dk {permutation = array<i64: 0, 2, 1, 3>} : (!k) -> !m\n"
                "  %t = graph.matmul %qt, %ds : (!qt, !s) -> !kt\n"
                "  return %dq, %m, %t : !q, !m, !kt\n"),
      why);
  ASSERT_TRUE(parts) << why;
  EXPECT_EQ(parts->scores.size(), 2u);
  ASSERT_EQ(parts->sums.size(), 3u);
  EXPECT_EQ(parts->sums[0].side, Side::Left);
  EXPECT_EQ(parts->sums[1].side, Side::Transposed);
  EXPECT_EQ(parts->sums[1].moves.size(), 1u);
  EXPECT_EQ(parts->sums[2].side, Side::Right);
  EXPECT_EQ(parts->weights().size(), 1u);
  EXPECT_EQ(parts->between.size(), 6u); // the transpose is no part of it
}

TEST_F(AttentionGradient, needsASumOverQueries) {
  EXPECT_EQ(refusal("!q", kRows + kQueries + "  return %dq : !q\n"),
            "no product sums over the queries");
}

TEST_F(AttentionGradient, keepsItsScoresToItself) {
  EXPECT_EQ(refusal("(!k, !s)", kRows + kKeys + "  return %dk, %ds : !k, !s\n"),
            "mul is read outside");
}

TEST_F(AttentionGradient, hasOneResultOfEachProduct) {
  EXPECT_EQ(
      refusal("(!k, !k)", kRows + kKeys + "  %n = graph.neg %dk : !k\n  return %dk, %n : !k, !k\n"),
      "two results of matmul are read outside");
}

TEST_F(AttentionGradient, doesNotMultiplyScoresByScores) {
  EXPECT_EQ(refusal("tensor<?x2x?x?xf32, #graph.dims<\"b\", 2, \"t\", \"t\">>",
                    kRows + "  %y = graph.matmul %dst, %p : (!st, !s) -> tensor<?x2x?x?xf32, "
                            "#graph.dims<\"b\", 2, \"t\", \"t\">>\n  return %y : "
                            "tensor<?x2x?x?xf32, #graph.dims<\"b\", 2, \"t\", \"t\">>\n"),
            "matmul multiplies what is computed of scores");
}

TEST_F(AttentionGradient, staysInItsRows) {
  EXPECT_EQ(refusal("!k", kRows +
                              "  %c = graph.reduce_sum %p {axes = array<i64: 2>, keep_dims = true} "
                              ": (!s) -> tensor<?x2x1x?xf32, #graph.dims<\"b\", 2, 1, \"t\">>\n" +
                              kKeys + "  return %dk : !k\n"),
            "reduce_sum does not reduce trailing dimensions");
}

} // namespace
