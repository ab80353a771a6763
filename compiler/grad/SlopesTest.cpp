// SlopesTest: every derivative against central differences of the interpreter's results in f64.

#include "compiler/grad/Gradients.h"
#include "compiler/grad/Rules.h"
#include "compiler/reference/Interpreter.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <regex>

using namespace mlir;
using namespace heddle;
using reference::Tensor;
using reference::Tensors;

namespace {

using Sizes = std::map<std::string, int64_t>;
struct Range {
  double low = -2, high = 2;
};
struct Case {
  const char *name;
  const char *arguments; // as MLIR text with short types
  const char *result;    // the type of y
  const char *body;
  std::vector<Range> ranges = {};
  std::vector<Sizes> runs = {};
};

#include "compiler/grad/SlopeCases.inc"

/// Short types written out: f64[a, 3] is tensor<?x3xf64, #graph.dims<"a", 3>>.
std::string writtenOut(const std::string &text, MLIRContext &context) {
  static const std::regex kShort(R"(\b(f64|f32|i64|i1)\[([^\]]*)\])");
  std::string result;
  std::sregex_iterator it(text.begin(), text.end(), kShort), end;
  auto rest = text.begin();
  for (; it != end; ++it) {
    graph::DimVector dims;
    SmallVector<StringRef> sizes;
    std::string list = (*it)[2], element = (*it)[1];
    StringRef(list).split(sizes, ',', -1, /*KeepEmpty=*/false);
    for (StringRef size : sizes)
      dims.push_back(*graph::Dim::parse(size.trim()));
    Builder builder(&context);
    Type type = element == "f64"   ? builder.getF64Type()
                : element == "f32" ? Type(builder.getF32Type())
                                   : builder.getIntegerType(element == "i64" ? 64 : 1);
    llvm::raw_string_ostream stream(result);
    stream << std::string(rest, (*it)[0].first) << graph::tensorOf(&context, dims, type);
    rest = (*it)[0].second;
  }
  return result + std::string(rest, text.end());
}

/// A module with @main of the arguments and a last one for the seed; it returns y.
OwningOpRef<ModuleOp> moduleOf(const Case &test, MLIRContext &context) {
  context.loadDialect<graph::GraphDialect, func::FuncDialect>();
  std::string text = std::string("func.func @main(") + test.arguments + ", %seed: " + test.result +
                     ") -> " + test.result + " {\n" + test.body + "\nreturn %y : " + test.result +
                     "\n}\n";
  return parseSourceString<ModuleOp>(writtenOut(text, context), &context);
}

func::FuncOp mainOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }

SmallVector<Value> variablesOf(func::FuncOp main) {
  SmallVector<Value> variables;
  for (Value argument : main.getArguments().drop_back())
    if (graph::elementOf(argument).isF64())
      variables.push_back(argument);
  return variables;
}

/// @main returns its derivatives instead, with respect to `xs`.
llvm::Error differentiate(func::FuncOp main, ArrayRef<Value> xs, Value seed) {
  Operation *end = main.front().getTerminator();
  OpBuilder builder(end);
  auto found = grad::gradients(builder, end->getLoc(), end->getOperand(0), xs, seed);
  if (!found)
    return found.takeError();
  end->setOperands(*found);
  main.setFunctionType(
      builder.getFunctionType(main.getArgumentTypes(), ValueRange(*found).getTypes()));
  return llvm::Error::success();
}

/// @main returns its derivative by the first variable; the seed becomes a variable too.
llvm::Error differentiateOnce(func::FuncOp main) {
  Value first = variablesOf(main).front(), seed = main.getArguments().back();
  if (llvm::Error error = differentiate(main, first, seed))
    return error;
  main.front().addArgument(first.getType(), main.getLoc());
  main.setFunctionType(
      FunctionType::get(main.getContext(), main.front().getArgumentTypes(), first.getType()));
  return llvm::Error::success();
}

Tensor randomTensor(Type type, Range range, const Sizes &sizes, std::mt19937 &random) {
  SmallVector<int64_t> shape;
  for (const graph::Dim &dim : graph::dimsOf(type))
    shape.push_back(*dim.evaluate([&](StringRef name) -> std::optional<int64_t> {
      auto found = sizes.find(name.str());
      return found == sizes.end() ? std::nullopt : std::optional(found->second);
    }));
  Tensor result = Tensor::zeros(cast<RankedTensorType>(type).getElementType(), shape);
  bool isWhole = !reference::isFloat(result.element);
  std::uniform_real_distribution<double> real(range.low, range.high);
  std::uniform_int_distribution<int64_t> whole(range.low, range.high);
  std::vector<double> values(result.count());
  for (double &value : values)
    value = isWhole ? static_cast<double>(whole(random)) : real(random);
  reference::store<double>(result, values);
  return result;
}

Tensors interpret(ModuleOp module, ArrayRef<Tensor> inputs) {
  auto results = reference::Interpreter(module).run(inputs);
  if (results)
    return std::move(*results);
  ADD_FAILURE() << llvm::toString(results.takeError());
  return {};
}

/// The sum of seed * y.
double weighted(ModuleOp module, ArrayRef<Tensor> inputs) {
  Tensors results = interpret(module, inputs);
  if (results.empty())
    return NAN;
  auto y = reference::load<double>(results[0]), seed = reference::load<double>(inputs.back());
  return std::inner_product(y.begin(), y.end(), seed.begin(), 0.0);
}

double centralDifference(ModuleOp module, std::vector<Tensor> inputs, size_t input,
                         size_t element) {
  constexpr double kStep = 1e-5;
  std::vector<double> values = reference::load<double>(inputs[input]);
  double at = values[element], sides[2];
  for (int side : {0, 1}) {
    values[element] = at + (side ? kStep : -kStep);
    inputs[input] = Tensor::zeros(inputs[input].element, inputs[input].shape);
    reference::store<double>(inputs[input], values);
    sides[side] = weighted(module, inputs);
  }
  return (sides[1] - sides[0]) / (2 * kStep);
}

void expectSlopes(ModuleOp before, ModuleOp after, ArrayRef<Tensor> inputs) {
  Tensors slopes = interpret(after, inputs);
  size_t next = 0;
  for (size_t i = 0; i + 1 < inputs.size() && !slopes.empty(); ++i) {
    if (!inputs[i].element.isF64())
      continue;
    ASSERT_LT(next, slopes.size());
    const Tensor &slope = slopes[next++];
    ASSERT_EQ(slope.shape, inputs[i].shape);
    std::vector<double> found = reference::load<double>(slope);
    for (size_t element = 0; element < found.size(); ++element) {
      double expected = centralDifference(before, inputs, i, element);
      EXPECT_NEAR(found[element], expected, 1e-6 * (1 + std::abs(expected)))
          << "by element " << element << " of input " << i;
    }
  }
}

void check(const Case &test, int order) {
  MLIRContext context;
  OwningOpRef<ModuleOp> before = moduleOf(test, context);
  ASSERT_TRUE(before) << test.body;
  for (int done = 1; done < order; ++done)
    ASSERT_FALSE(llvm::errorToBool(differentiateOnce(mainOf(*before))));
  OwningOpRef<ModuleOp> after = before->clone();
  func::FuncOp main = mainOf(*after);
  llvm::Error error = differentiate(main, variablesOf(main), main.getArguments().back());
  ASSERT_FALSE(error) << llvm::toString(std::move(error));
  ASSERT_TRUE(succeeded(verify(*after)));
  std::mt19937 random(11);
  std::vector<Sizes> runs = test.runs;
  if (runs.empty())
    runs.assign(std::begin(kOdd), std::end(kOdd));
  for (const Sizes &sizes : runs) {
    std::vector<Tensor> inputs;
    for (auto [i, type] : llvm::enumerate(main.getArgumentTypes())) {
      bool isSeed = i + 1 == main.getNumArguments();
      Range range = !isSeed && i < test.ranges.size() ? test.ranges[i] : Range();
      inputs.push_back(randomTensor(type, range, sizes, random));
    }
    expectSlopes(*before, *after, inputs);
  }
}

class Grad : public testing::TestWithParam<Case> {};
TEST_P(Grad, is_the_limit_of_differences) { check(GetParam(), 1); }
TEST_P(Grad, can_be_differentiated_again) { check(GetParam(), 2); }

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  return std::regex_replace(std::string(info.param.name), std::regex("[^a-z_]+"), "_");
}
INSTANTIATE_TEST_SUITE_P(Ops, Grad, testing::ValuesIn(slopeCases), nameOf);

TEST(Gradients, every_rule_has_a_case) {
  std::string all;
  for (const Case &test : slopeCases)
    all += std::string(test.body) + "\n";
  for (grad::Rows rows :
       {grad::elementwiseRules(), grad::movementRules(), grad::indexRules(), grad::reductionRules(),
        grad::routineRules(), grad::productRules(), grad::windowRules(), grad::controlRules()})
    for (const grad::Row &row : rows)
      if (row.rule)
        EXPECT_NE(all.find(row.op.str() + " "), std::string::npos) << row.op.str();
}

/// Derivatives of y by x at given numbers, with a seed of ones.
std::vector<double> slopesAt(const Case &test, std::vector<double> x) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = moduleOf(test, context);
  func::FuncOp main = mainOf(*module);
  EXPECT_FALSE(llvm::errorToBool(differentiate(main, main.getArgument(0), nullptr)));
  std::vector<Tensor> inputs;
  for (Type type : main.getArgumentTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    inputs.push_back(Tensor::zeros(tensor.getElementType(), tensor.getShape()));
  }
  reference::store<double>(inputs[0], x);
  Tensors results = interpret(*module, inputs);
  return results.empty() ? std::vector<double>() : reference::load<double>(results[0]);
}

using Numbers = std::vector<double>;

TEST(Gradients, relu_is_flat_at_zero) {
  Case test{"", "%x: f64[3]", "f64[3]", R"(
    %0 = graph.constant dense<0.0> : f64[3]
    %y = graph.max %x, %0 : f64[3])"};
  EXPECT_EQ(slopesAt(test, {-1, 0, 1}), (Numbers{0, 0, 1}));
}

const char *const kQuantised = R"(
    %scale = graph.constant dense<[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 2.0, 2.0]> : f64[8]
    %zero = graph.constant dense<100.0> : f64[8]
    %least = graph.constant dense<0.0> : f64[8]
    %most = graph.constant dense<255.0> : f64[8]
    %point = graph.constant dense<100> : tensor<8xi32>
    %0 = graph.div %x, %scale : f64[8]
    %1 = graph.round %0 : f64[8]
    %2 = graph.add %1, %zero : f64[8]
    %3 = graph.max %2, %least : f64[8]
    %4 = graph.min %3, %most : f64[8]
    %5 = graph.cast %4 : (f64[8]) -> tensor<8xui8>
    %6 = graph.cast %5 : (tensor<8xui8>) -> tensor<8xi32>
    %7 = graph.sub %6, %point : tensor<8xi32>
    %8 = graph.cast %7 : (tensor<8xi32>) -> f64[8]
    %y = graph.mul %8, %scale : f64[8])";

TEST(Gradients, quantising_passes_straight_through_within_its_range) {
  Numbers x{-50, -50.3, -50.2, 0.1, 77.5, 77.8, 310, 312};
  EXPECT_EQ(slopesAt({"", "%x: f64[8]", "f64[8]", kQuantised}, x),
            (Numbers{1, 0, 1, 1, 1, 0, 1, 0}));
  EXPECT_EQ(slopesAt({"", "%x: f64[8]", "f64[8]", kQuantised}, Numbers(8, NAN)), Numbers(8, 0));
}

TEST(Gradients, a_scale_has_the_slope_of_its_rounding) {
  std::string body = std::regex_replace(kQuantised, std::regex("%scale(?! =)"), "%x");
  body = std::regex_replace(body, std::regex("div %x"), "div %given");
  body = "%given = graph.constant dense<[-60.0, -0.3, 0.0, 0.1, 0.2, 0.3, 0.4, 99.0]> : f64[8]\n" +
         body;
  // Steps of the range beyond it, and within it what rounding has added.
  Numbers wanted{-100, -0.4, 0, -0.2, -0.4, 0.4, 0.2, 155};
  Numbers found = slopesAt({"", "%x: f64[8]", "f64[8]", body.c_str()}, Numbers(8, 0.5));
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], 1e-12) << i;
}

TEST(Gradients, other_roundings_are_flat) {
  for (const char *without : {"round", "max", "min"}) {
    std::string body = std::regex_replace(
        kQuantised, std::regex(std::string("graph\\.") + without + " (%[0-9])(, %[a-z]+)?"),
        "graph.abs $1");
    EXPECT_EQ(slopesAt({"", "%x: f64[8]", "f64[8]", body.c_str()}, Numbers(8, 1)), Numbers(8, 0))
        << without;
  }
}

TEST(Gradients, equal_largest_elements_share_evenly) {
  Case test{"", "%x: f64[4]", "f64[]",
            "%y = graph.reduce_max %x {axes = array<i64: 0>} : (f64[4]) -> f64[]"};
  EXPECT_EQ(slopesAt(test, {3, 1, 3, 2}), (Numbers{0.5, 0, 0.5, 0}));
}

/// Rounding of sums would be all that flows through the largest element.
TEST(Gradients, the_shift_of_a_log_of_sums_has_no_slope) {
  const std::string guarded = R"(
      %i = graph.is_inf %m {positive = true, negative = true} : (f64[a, 1]) -> i1[a, 1]
      %0 = graph.constant dense<0.0> : f64[]
      %z = graph.broadcast %0 : (f64[]) -> f64[a, 1]
      %s = graph.select %i, %z, %m : (i1[a, 1], f64[a, 1], f64[a, 1]) -> f64[a, 1])";
  for (bool isGuarded : {false, true}) {
    std::string body = R"(
      %m = graph.reduce_max %x {axes = array<i64: 1>, keep_dims = true} : (f64[a, 3]) -> f64[a, 1]
      GUARD
      %b = graph.broadcast SHIFT : (f64[a, 1]) -> f64[a, 3]
      %d = graph.sub %x, %b : f64[a, 3]
      %e = graph.exp %d : f64[a, 3]
      %t = graph.reduce_sum %e {axes = array<i64: 1>, keep_dims = true} : (f64[a, 3]) -> f64[a, 1]
      %l = graph.log %t : f64[a, 1]
      %y = graph.add %l, SHIFT : f64[a, 1])";
    body = std::regex_replace(body, std::regex("GUARD"), isGuarded ? guarded : "");
    body = std::regex_replace(body, std::regex("SHIFT"), isGuarded ? "%s" : "%m");
    MLIRContext context;
    auto module = moduleOf({"", "%x: f64[a, 3]", "f64[a, 1]", body.c_str()}, context);
    ASSERT_TRUE(module);
    func::FuncOp main = mainOf(*module);
    ASSERT_FALSE(
        llvm::errorToBool(differentiate(main, main.getArgument(0), main.getArguments().back())));
    int64_t comparisons = 0;
    main.walk([&](graph::EqualOp) { ++comparisons; });
    EXPECT_EQ(comparisons, 0) << body;
  }
}

TEST(Gradients, a_product_has_slopes_where_factors_are_zero) {
  Case test{"", "%x: f64[2, 3]", "f64[2]",
            "%y = graph.reduce_prod %x {axes = array<i64: 1>} : (f64[2, 3]) -> f64[2]"};
  EXPECT_EQ(slopesAt(test, {0, 2, 3, 0, 0, 5}), (Numbers{6, 0, 0, 0, 0, 0}));
}

TEST(Gradients, a_scatter_that_multiplies_has_slopes_where_factors_are_zero) {
  Case test{"", "%x: f64[2]", "f64[2]", R"(
    %i = graph.constant dense<[0, 1, 1]> : i64[3]
    %u = graph.constant dense<[4.0, 0.0, 5.0]> : f64[3]
    %y = graph.scatter_elements %x, %i, %u {axis = 0, reduction = "mul"}
      : (f64[2], i64[3], f64[3]) -> f64[2])"};
  EXPECT_EQ(slopesAt(test, {0, 3}), (Numbers{4, 0}));
}

TEST(Gradients, powers_of_zero_have_finite_slopes) {
  Case test{"", "%x: f64[3]", "f64[3]", R"(
    %p = graph.constant dense<[0.0, 1.0, 2.0]> : f64[3]
    %y = graph.pow %x, %p : f64[3])"};
  EXPECT_EQ(slopesAt(test, {0, 0, 0}), (Numbers{0, 1, 0}));
}

TEST(Gradients, what_y_does_not_follow_from_has_slope_zero) {
  Case test{"", "%x: f64[2], %z: f64[2]", "f64[2]", "%y = graph.exp %z : f64[2]"};
  EXPECT_EQ(slopesAt(test, {1, 2}), (Numbers{0, 0}));
}

TEST(Gradients, steps_compute_no_product_again) {
  MLIRContext context;
  auto test =
      llvm::find_if(slopeCases, [](auto &each) { return each.name == StringRef("scan_products"); });
  OwningOpRef<ModuleOp> module = moduleOf(*test, context);
  func::FuncOp main = mainOf(*module);
  ASSERT_FALSE(llvm::errorToBool(differentiate(main, main.getArgument(0), nullptr)));
  auto scans = llvm::to_vector(main.getOps<graph::ScanOp>());
  graph::ScanOp back = scans.back();
  // Copies of the forward step's ops have no readers; the sigmoid and the sum were stacked.
  for (auto sigmoid : back.getBody().getOps<graph::SigmoidOp>())
    EXPECT_TRUE(sigmoid->use_empty());
  int64_t read = 0;
  for (BlockArgument slice : back.getBody().getArguments().drop_front(back.getStateCount()))
    read += !slice.use_empty();
  EXPECT_EQ(read, 5);
}

std::string refusalOf(const Case &test) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = moduleOf(test, context);
  func::FuncOp main = mainOf(*module);
  llvm::Error error = differentiate(main, main.getArgument(0), nullptr);
  return error ? llvm::toString(std::move(error)) : "";
}

TEST(Gradients, refuse_an_op_without_derivative) {
  EXPECT_EQ(
      refusalOf({"", "%x: f64[2]", "f64[2]", R"(
      %b = graph.bitcast %x : (f64[2]) -> i64[2] loc("bits")
      %y = graph.cast %b : (i64[2]) -> f64[2])"}),
      "op 'graph.bitcast' of 'bits' lies between what is differentiated and the variables, but "
      "has no derivative");
}

TEST(Gradients, refuse_an_op_inside_of_a_branch) {
  EXPECT_EQ(
      refusalOf({"", "%x: f64[2]", "f64[2]", R"(
      %c = graph.constant dense<true> : i1[]
      %y = graph.if %c : (i1[]) -> f64[2] {
        %0 = graph.bitcast %x : (f64[2]) -> i64[2] loc("bits")
        %1 = graph.cast %0 : (i64[2]) -> f64[2]
        graph.yield %1 : f64[2]
      } else {
        graph.yield %x : f64[2]
      } loc("choice"))"}),
      "op 'graph.if' of 'choice' has no derivative: op 'graph.bitcast' of 'bits' lies between "
      "what is differentiated and the variables, but has no derivative");
}

TEST(Gradients, refuse_filters_of_unknown_size) {
  EXPECT_EQ(
      refusalOf({"", "%x: f64[1, 4, 8], %i: f64[4, 1, n]", "f64[1, 1, 7 + n]", R"(
      %y = graph.conv_transpose %x, %i {strides = array<i64: 1>, dilations = array<i64: 1>,
        low = array<i64: 0>, high = array<i64: 0>, output_padding = array<i64: 0>}
        : (f64[1, 4, 8], f64[4, 1, n]) -> f64[1, 1, 7 + n] loc("c"))"}),
      "op 'graph.conv_transpose' of 'c' has no derivative: its filters have shape [4, 1, n]; those "
      "with a derivative have a window of constant size, of 1 to 1024 elements");
}

TEST(Gradients, refuse_pools_of_large_windows) {
  EXPECT_EQ(refusalOf({"", "%x: f64[1, 1, 64, 64]", "f64[1, 1, 1, 1]", R"(
      %y = graph.pool %x {kind = "max", window = array<i64: 64, 64>, strides = array<i64: 1, 1>,
        dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>}
        : (f64[1, 1, 64, 64]) -> f64[1, 1, 1, 1] loc("p"))"}),
            "op 'graph.pool' of 'p' has no derivative: its window has 4096 elements; those with a "
            "derivative have 1024 or fewer");
}

TEST(Gradients, refuse_integers) {
  EXPECT_EQ(refusalOf({"", "%x: f64[2]", "i64[2]", "%y = graph.cast %x : (f64[2]) -> i64[2]"}),
            "what is differentiated is tensor<2xi64>, but must be of a floating-point type");
  EXPECT_EQ(refusalOf({"", "%x: i64[2]", "f64[2]", "%y = graph.cast %x : (i64[2]) -> f64[2]"}),
            "variable 0 is tensor<2xi64>, but must be of a floating-point type");
}

} // namespace
