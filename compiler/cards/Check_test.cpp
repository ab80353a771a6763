// Check_test: what a proof is made of: sizes, wrong kernels, and the comparison.

#include "compiler/cards/Check.h"
#include "compiler/cards/Mutation.h"
#include "compiler/trial/Numbers.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace heddle;
using namespace heddle::cards;
using namespace heddle::trial;
using reference::Tensor;

namespace {

constexpr StringLiteral kCard = R"(
!x = tensor<?x?xf32, #graph.dims<"m", "n">>
!s = tensor<?x1xf32, #graph.dims<"m", 1>>
module attributes {transform.with_named_sequence, heddle.card = {target = "cpu"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %rows: !transform.param<i64> {transform.readonly, heddle.knob = [1, 4],
        heddle.default = 1 : i64}) {
    transform.heddle.rows %group rows %rows : !transform.any_op
    transform.yield
  }
  func.func @example(%x: !x) -> !x {
    %m = graph.reduce_max %x {axes = array<i64: 1>, keep_dims = true} : (!x) -> !s
    %b = graph.broadcast %m : (!s) -> !x
    %y = graph.sub %x, %b : !x
    return %y : !x
  }
}
)";

class Check : public testing::Test {
protected:
  Tensor tensor(ArrayRef<double> numbers) {
    Tensor result = Tensor::zeros(Float32Type::get(context.get()), {int64_t(numbers.size())});
    reference::store<double>(result, numbers);
    return result;
  }
  OwningOpRef<ModuleOp> trial() {
    card = llvm::cantFail(warehouse::parseCard(*context, kCard, "rows.mlir"));
    auto trials = llvm::cantFail(trialsOf(*card, random, [](const Trial &) { return true; }));
    return parseSourceString<ModuleOp>(trials.front().text, context.get());
  }

  std::unique_ptr<MLIRContext> context = makeContext();
  std::optional<warehouse::Card> card;
  Random random{5};
};

TEST_F(Check, provesACardOnItsExample) {
  Proof proof = llvm::cantFail(checkText(kCard, "rows.mlir", {12, 3}));
  EXPECT_FALSE(proof.difference);
  EXPECT_EQ(proof.cases, 12);
  EXPECT_EQ(proof.carriedOut, proof.kernels);
  EXPECT_FALSE(proof.caught.empty());
}

TEST_F(Check, comparesUpToRounding) {
  Tensor one = tensor({1, 100, NAN, INFINITY});
  EXPECT_EQ(difference(one, tensor({1.00001, 100.001, NAN, INFINITY})), "");
  EXPECT_EQ(difference(one, tensor({1, 101, NAN, 3})),
            "2 of 4 elements differ, the first at 1: 1.010000e+02 instead of 1.000000e+02");
  EXPECT_EQ(difference(one, tensor({1})), "it has another shape");
  EXPECT_NE(difference(tensor({NAN}), tensor({1})), "");
}

TEST_F(Check, makesEachOpWrong) {
  EXPECT_EQ(countMutations(*trial()), 2);
  const char *changes[] = {"'graph.reduce_max' becomes 'graph.reduce_min'",
                           "'graph.sub' becomes 'graph.add'"};
  for (int64_t number : {0, 1}) {
    OwningOpRef<ModuleOp> module = trial();
    EXPECT_EQ(mutate(*module, number), changes[number]);
  }
}

TEST_F(Check, drawsSizesAtTheEdges) {
  OwningOpRef<ModuleOp> module = trial();
  auto main = module->lookupSymbol<func::FuncOp>("main");
  std::set<int64_t> seen;
  for (int i = 0; i < 400; ++i)
    for (auto &[symbol, size] : randomSizes(main, 16, true, random))
      seen.insert(size);
  for (int64_t size : {0, 1, 3, 15, 16, 17, 32, 35})
    EXPECT_TRUE(seen.count(size)) << size;
  EXPECT_LE(*seen.rbegin(), 64);
}

TEST_F(Check, fixesSizesInAllTypes) {
  OwningOpRef<ModuleOp> module = trial();
  fixSizes(*module, {{"m", 3}, {"n", 7}});
  std::string text = textOf(*module);
  EXPECT_NE(text.find("tensor<3x7xf32>"), std::string::npos);
  EXPECT_EQ(text.find("?"), std::string::npos);
}

} // namespace
