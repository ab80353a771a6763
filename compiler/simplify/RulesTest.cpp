// SimplifyTest: a graph means the same after simplify as before, by the word of the interpreter.
//
// Inputs are random, of all magnitudes; where a rule works element by element some of them are NaN
// or infinite.

#include "compiler/reference/Interpreter.h"
#include "compiler/simplify/Passes.h"

#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace mlir;
using namespace heddle;

namespace {

/// How far results may be from those of the ops: not at all, by sums in another order, or by
/// factors that are multiplied elsewhere, too, which `isStrict` rules out.
enum Bound { kExact, kReordered, kRounded };

struct Case {
  const char *name;
  const char *arguments; // @main's, as MLIR text; the sizes of symbols are 3
  const char *results;
  const char *body;
  bool hasSpecials = true;      // inputs hold NaN and infinities
  const char *absent = nullptr; // an op that must be gone
  Bound bound = kExact;
};

#include "compiler/simplify/LayoutCases.inc"
#include "compiler/simplify/RuleCases.inc"

std::string textOf(const Case &test) {
  return std::string("func.func @main(") + test.arguments + ") -> (" + test.results + ") {\n" +
         test.body + "\n}\n";
}

/// `isWide`: numbers of all magnitudes, or near 1.
reference::Tensor randomTensor(Type type, std::mt19937 &random, bool hasSpecials, bool isWide) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape;
  for (int64_t size : tensor.getShape())
    shape.push_back(ShapedType::isDynamic(size) ? 3 : size);
  auto result = reference::Tensor::zeros(tensor.getElementType(), shape);
  std::vector<double> values(result.count());
  std::uniform_real_distribution<double> uniform(-2, 2);
  const double specials[] = {NAN, INFINITY, -INFINITY, 0.0, 1.0, -1.0};
  for (double &value : values) {
    value = uniform(random);
    if (isa<IntegerType>(tensor.getElementType()))
      value = std::round(value);
    else if (isWide && random() % 2)
      value = std::ldexp(value, static_cast<int>(random() % 64) - 32);
    else if (hasSpecials && random() % 3 == 0)
      value = specials[random() % std::size(specials)];
  }
  reference::store<double>(result, values);
  return result;
}

std::vector<reference::Tensor> interpret(ModuleOp module, ArrayRef<reference::Tensor> inputs) {
  auto results = reference::Interpreter(module).run(inputs);
  if (results)
    return std::move(*results);
  ADD_FAILURE() << llvm::toString(results.takeError());
  return {};
}

void expectSame(const reference::Tensor &was, const reference::Tensor &is, Bound bound) {
  double error = bound == kExact ? 0 : 1e-5;
  ASSERT_EQ(was.shape, is.shape);
  ASSERT_EQ(was.element, is.element);
  auto a = reference::load<double>(was), b = reference::load<double>(is);
  for (size_t i = 0; i < a.size(); ++i) {
    bool isSame = (std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] ||
                  std::abs(a[i] - b[i]) <= error * (1 + std::abs(a[i]));
    EXPECT_TRUE(isSame) << "element " << i << ": " << a[i] << " became " << b[i];
  }
}

class Simplify : public testing::TestWithParam<Case> {};

void check(const Case &test, llvm::function_ref<void(OpPassManager &)> addPasses) {
  MLIRContext context;
  context.loadDialect<graph::GraphDialect, func::FuncDialect>();
  auto before = parseSourceString<ModuleOp>(textOf(test), &context);
  ASSERT_TRUE(before) << textOf(test);
  OwningOpRef<ModuleOp> after = before->clone();
  PassManager manager(&context);
  addPasses(manager);
  ASSERT_TRUE(succeeded(manager.run(*after)));
  if (test.absent)
    after->walk([&](Operation *op) { EXPECT_NE(op->getName().getStringRef(), test.absent); });
  std::mt19937 random(7);
  for (int round = 0; round < 10; ++round) {
    std::vector<reference::Tensor> inputs;
    for (Type type : before->lookupSymbol<func::FuncOp>("main").getArgumentTypes())
      inputs.push_back(randomTensor(type, random, test.hasSpecials, test.bound == kExact));
    auto was = interpret(*before, inputs), is = interpret(*after, inputs);
    ASSERT_EQ(was.size(), is.size());
    for (size_t i = 0; i < was.size(); ++i)
      expectSame(was[i], is[i], test.bound);
  }
}

TEST_P(Simplify, means_the_same) {
  check(GetParam(), [](OpPassManager &manager) {
    simplify::addSimplifyPasses(manager, {.channelsLast = false});
  });
}

TEST_P(Simplify, means_the_same_channels_last) {
  check(GetParam(), [](OpPassManager &manager) { simplify::addSimplifyPasses(manager); });
}

TEST_P(Simplify, rounds_as_the_ops_do) {
  Case test = GetParam();
  test.absent = nullptr;
  if (test.bound == kRounded)
    test.bound = kExact;
  check(test, [](OpPassManager &manager) {
    simplify::addSimplifyPasses(manager, {.channelsLast = false, .isStrict = true});
  });
}

std::string nameOf(const testing::TestParamInfo<Case> &info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Rules, Simplify, testing::ValuesIn(ruleCases), nameOf);
INSTANTIATE_TEST_SUITE_P(Layouts, Simplify, testing::ValuesIn(layoutCases), nameOf);

} // namespace
