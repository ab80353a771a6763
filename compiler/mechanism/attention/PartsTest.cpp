// PartsTest: which sets of ops are an attention, which may become one, and why others may not.

#include "compiler/mechanism/attention/Attention.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;
using mechanism::Fit;

namespace {

constexpr StringLiteral kTypes = R"(
!q = tensor<?x2x?x16xf32, #graph.dims<"b", 2, "s", 16>>
!k = tensor<?x2x16x?xf32, #graph.dims<"b", 2, 16, "t">>
!v = tensor<?x2x?x8xf32, #graph.dims<"b", 2, "t", 8>>
!s = tensor<?x2x?x?xf32, #graph.dims<"b", 2, "s", "t">>
!r = tensor<?x2x?x1xf32, #graph.dims<"b", 2, "s", 1>>
!o = tensor<?x2x?x8xf32, #graph.dims<"b", 2, "s", 8>>
!t = tensor<?x?x2x8xf32, #graph.dims<"b", "s", 2, 8>>
!i = tensor<?x2x?x?xi1, #graph.dims<"b", 2, "s", "t">>
func.func @main(%q: !q, %k: !k, %v: !v, %mask: !s, %scale: tensor<f32>) -> )";

constexpr StringLiteral kScores = R"(
  %scores = graph.matmul %q, %k : (!q, !k) -> !s
  %c = graph.broadcast %scale : (tensor<f32>) -> !s
  %scaled = graph.mul %scores, %c : !s
  %logits = graph.add %scaled, %mask : !s
)";
constexpr StringLiteral kPowers = R"(
  %x = graph.reduce_max %logits {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
  %xb = graph.broadcast %x : (!r) -> !s
  %shifted = graph.sub %logits, %xb : !s
  %e = graph.exp %shifted : !s
  %sum = graph.reduce_sum %e {axes = array<i64: 3>, keep_dims = true} : (!s) -> !r
)";
constexpr StringLiteral kDivided = R"(
  %sb = graph.broadcast %sum : (!r) -> !s
  %p = graph.div %e, %sb : !s
)";
constexpr StringLiteral kValues = "  %o = graph.matmul %p, %v : (!s, !v) -> !o\n";

class Attention : public testing::Test {
protected:
  Attention() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  /// The last product of a function with this body.
  graph::MatmulOp parse(const Twine &results, const Twine &body) {
    std::string text = (kTypes + results + " {\n" + body + "}\n").str();
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    graph::MatmulOp last;
    module->walk([&](graph::MatmulOp op) { last = op; });
    return last;
  }
  /// All ops of the function.
  SmallVector<Operation *> all() {
    auto main = module->lookupSymbol<func::FuncOp>("main");
    SmallVector<Operation *> ops;
    for (Operation &op : main.getBody().front().without_terminator())
      ops.push_back(&op);
    return ops;
  }
  static Fit fit(mechanism::Ops ops) { return mechanism::kAttention.fits(ops).fit; }
  std::string refusal() {
    mechanism::Verdict verdict = mechanism::kAttention.fits(all());
    EXPECT_EQ(verdict.fit, Fit::No);
    return verdict.why;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Attention, isPartialFromItsSecondProductOn) {
  parse("!o", kScores + kPowers + kDivided + kValues + "  return %o : !o\n");
  SmallVector<Operation *> ops = all();
  for (size_t count = 1; count < ops.size(); ++count)
    EXPECT_EQ(fit(ArrayRef<Operation *>(ops).take_back(count)), Fit::Partial) << count;
  EXPECT_EQ(fit(ops), Fit::Full);
}

TEST_F(Attention, endsInATranspose) {
  graph::MatmulOp values = parse("!t", kScores + kPowers + kDivided + kValues +
                                           "  %t = graph.transpose %o {permutation = array<i64: 0, "
                                           "2, 1, 3>} : (!o) -> !t\n  return %t : !t\n");
  std::string why;
  auto parts = mechanism::readAttention(all(), why);
  ASSERT_TRUE(parts) << why;
  EXPECT_EQ(parts->values, values);
  EXPECT_EQ(parts->result.getDefiningOp(), all().back());
  EXPECT_EQ(parts->moves.size(), 1u);
  EXPECT_TRUE(parts->dividesLast);
}

TEST_F(Attention, mayDivideAfterTheSecondProduct) {
  parse("!o", kScores + kPowers +
                  "  %w = graph.matmul %e, %v : (!s, !v) -> !o\n"
                  "  %sb = graph.broadcast %sum : (!r) -> !o\n"
                  "  %o = graph.div %w, %sb : !o\n  return %o : !o\n");
  std::string why;
  auto parts = mechanism::readAttention(all(), why);
  ASSERT_TRUE(parts) << why;
  EXPECT_FALSE(parts->dividesLast);
  EXPECT_EQ(parts->weights, parts->powers);
}

TEST_F(Attention, keepsItsWeightsToItself) {
  parse("(!o, !s)", kScores + kPowers + kDivided + kValues + "  return %o, %p : !o, !s\n");
  EXPECT_EQ(refusal(), "two results are used outside");
}

TEST_F(Attention, saysWhatIsMissing) {
  parse("!o", kScores + "  %o = graph.matmul %logits, %v : (!s, !v) -> !o\n  return %o : !o\n");
  EXPECT_EQ(refusal(), "no softmax leads to the left operand of the product");
  parse("!o",
        kScores + kPowers + "  %o = graph.matmul %e, %v : (!s, !v) -> !o\n" + "  return %o : !o\n");
  EXPECT_EQ(refusal(), "two results are used outside"); // nothing divides by the sum
  parse("!o",
        "  %logits = graph.abs %mask : !s\n" + kPowers + kDivided + kValues + "  return %o : !o\n");
  EXPECT_EQ(refusal(), "the softmax is not of a product's elements");
}

TEST_F(Attention, refusesWhatTheRowsAlsoServe) {
  parse("!o", kScores + kPowers + kDivided +
                  "  %w = graph.mul %p, %logits : !s\n"
                  "  %o = graph.matmul %w, %v : (!s, !v) -> !o\n  return %o : !o\n");
  EXPECT_EQ(refusal(), "'graph.mul' between the products is no part of a softmax");
}

} // namespace
