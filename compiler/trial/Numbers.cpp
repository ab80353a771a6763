// Numbers: random sizes and tensors, and the comparison of results.

#include "compiler/trial/Numbers.h"

#include "compiler/graph/LoopNest.h"
#include "compiler/support/Error.h"

#include <cmath>

using namespace mlir;

namespace heddle::trial {

using graph::Dim;
using reference::Tensor;

/// Steps of the interpreter in one case: about a tenth of a second.
static constexpr double kMostSteps = 2e6;
static constexpr double kMostElements = 1 << 26; // limit of one tensor

static bool isTooLarge(ArrayRef<int64_t> shape) {
  double count = 1;
  for (int64_t size : shape)
    count *= std::max<int64_t>(1, size);
  return count > kMostElements;
}

Tensor randomTensor(Type element, ArrayRef<int64_t> shape, Attribute range, Random &random) {
  Tensor result = Tensor::zeros(element, shape);
  bool isWhole = !isa<FloatType>(element);
  double low = isWhole ? -8 : -2, high = isWhole ? 8 : 2;
  if (reference::isUnsigned(element))
    low = 0;
  if (element.isInteger(1))
    high = 1;
  if (isRange(range)) {
    auto ends = cast<ArrayAttr>(range);
    low = cast<IntegerAttr>(ends[0]).getInt();
    high = cast<IntegerAttr>(ends[1]).getInt();
  }
  std::vector<double> numbers(result.count());
  for (double &number : numbers)
    number = isWhole ? low + double(random() % uint64_t(high - low + 1))
                     : low + (high - low) * (random() / 4294967296.0);
  reference::store<double>(result, numbers);
  return result;
}

bool isRange(Attribute range) {
  auto ends = dyn_cast_or_null<ArrayAttr>(range);
  auto isNumber = [](Attribute end) {
    auto number = dyn_cast<IntegerAttr>(end);
    return number && number.getType().isInteger(64) && std::abs(number.getInt()) < (1 << 30);
  };
  return ends && ends.size() == 2 && llvm::all_of(ends, isNumber) &&
         cast<IntegerAttr>(ends[0]).getInt() <= cast<IntegerAttr>(ends[1]).getInt();
}

llvm::Expected<ElementsAttr> randomConstant(RankedTensorType type, Attribute range,
                                            Random &random) {
  for (const Dim &dim : graph::dimsOf(type))
    if (!dim.constant())
      return makeError(ErrorCode::Usage, "error: an argument that is 'heddle.constant' has size '" +
                                             dim.str() + "', but must have constant sizes");
  if (isTooLarge(type.getShape()))
    return makeError(ErrorCode::Usage,
                     "error: an argument that is 'heddle.constant' has more than " +
                         Twine(int64_t(kMostElements)) + " elements");
  Tensor tensor = randomTensor(type.getElementType(), type.getShape(), range, random);
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> bits(tensor.bytes().begin(), tensor.bytes().end());
    return DenseElementsAttr::get(type, bits);
  }
  auto kept = RankedTensorType::get(type.getShape(), graph::storageOf(type.getElementType()));
  return graph::constantAttr(type, DenseElementsAttr::getFromRawBuffer(kept, tensor.bytes()));
}

static std::optional<int64_t> valueOf(const Dim &dim, const Sizes &sizes) {
  return dim.evaluate([&](StringRef symbol) -> std::optional<int64_t> {
    auto known = sizes.find(symbol.str());
    return known == sizes.end() ? std::nullopt : std::optional(known->second);
  });
}

static double stepsOf(ArrayRef<graph::Loop> loops, const Sizes &sizes) {
  double steps = 0;
  for (const graph::Loop &loop : loops)
    steps += std::max<int64_t>(1, valueOf(loop.extent, sizes).value_or(1)) *
             (1 + stepsOf(loop.children, sizes));
  return steps;
}

static double stepsOf(func::FuncOp main, const Sizes &sizes) {
  double steps = 0;
  main.walk([&](Operation *op) {
    if (isa<graph::GraphDialect>(op->getDialect()) && op->getNumResults() > 0 &&
        op->getNumRegions() == 0 && !isa<graph::ConstantOp>(op))
      steps += stepsOf(graph::loopNestOf(op).loops, sizes);
  });
  for (Type type : main.getArgumentTypes()) {
    auto count = valueOf(graph::elementCount(graph::dimsOf(type)), sizes);
    steps += count.value_or(0);
  }
  return steps;
}

Sizes randomSizes(func::FuncOp main, int64_t lanes, bool mayBeEmpty, Random &random) {
  SmallVector<std::string> symbols;
  for (Type type : main.getArgumentTypes())
    for (const Dim &dim : graph::dimsOf(type))
      dim.collectSymbols(symbols);
  const int64_t edges[] = {1,         3,         lanes - 1,     lanes,
                           lanes + 1, 2 * lanes, 2 * lanes + 3, 3 * lanes + lanes / 2};
  Sizes sizes;
  for (const std::string &symbol : symbols)
    sizes[symbol] = random() % 2 ? edges[random() % std::size(edges)] : 1 + random() % (4 * lanes);
  if (mayBeEmpty && !sizes.empty() && random() % 8 == 0)
    std::next(sizes.begin(), random() % sizes.size())->second = 0;
  while (stepsOf(main, sizes) > kMostSteps) {
    auto largest =
        llvm::max_element(sizes, [](const auto &a, const auto &b) { return a.second < b.second; });
    if (largest == sizes.end() || largest->second <= 1)
      break;
    largest->second = (largest->second + 1) / 2;
  }
  return sizes;
}

bool isTooSlow(func::FuncOp main, const Sizes &sizes) { return stepsOf(main, sizes) > 5e8; }

std::optional<reference::Tensors> randomInputs(func::FuncOp main, const Sizes &sizes,
                                               Random &random) {
  reference::Tensors inputs;
  for (auto [i, type] : llvm::enumerate(main.getArgumentTypes())) {
    SmallVector<int64_t> shape;
    for (const Dim &dim : graph::dimsOf(type)) {
      auto size = valueOf(dim, sizes);
      if (!size || *size < 0)
        return std::nullopt;
      shape.push_back(*size);
    }
    if (isTooLarge(shape))
      return std::nullopt;
    inputs.push_back(randomTensor(cast<RankedTensorType>(type).getElementType(), shape,
                                  main.getArgAttr(i, "heddle.range"), random));
  }
  return inputs;
}

namespace {
struct Tolerance {
  double relative, absolute; // the latter for results whose largest number is 1
};
} // namespace

static Tolerance toleranceOf(Type element) {
  if (element.isF64())
    return {1e-9, 1e-11};
  if (element.isF32())
    return {1e-4, 1e-5};
  double unit = std::ldexp(1, element.isF16() ? -10 : -7);
  return {4 * unit, 2 * unit};
}

static bool isClose(double expected, double found, double absolute, double relative) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found))
    return expected == found;
  return std::fabs(expected - found) <= absolute + relative * std::fabs(expected);
}

std::string difference(const Tensor &expected, const Tensor &found, double slack) {
  if (expected.shape != found.shape)
    return "it has another shape";
  int64_t count = expected.count(), wrong = 0, first = 0;
  bool isFloat = isa<FloatType>(expected.element);
  Tolerance tolerance = isFloat ? toleranceOf(expected.element) : Tolerance{0, 0};
  double largest = 1;
  for (int64_t i = 0; isFloat && i < count; ++i)
    if (double size = std::fabs(reference::numberAt(expected, i)); std::isfinite(size))
      largest = std::max(largest, size);
  for (int64_t i = 0; i < count; ++i) {
    bool isSame = isFloat ? isClose(reference::numberAt(expected, i), reference::numberAt(found, i),
                                    tolerance.absolute * largest + slack, tolerance.relative)
                          : reference::integerAt(expected, i) == reference::integerAt(found, i);
    if (!isSame && wrong++ == 0)
      first = i;
  }
  if (!wrong)
    return "";
  auto text = [&](const Tensor &tensor) {
    return isFloat ? llvm::formatv("{0:e}", reference::numberAt(tensor, first)).str()
                   : std::to_string(reference::integerAt(tensor, first));
  };
  return llvm::formatv("{0} of {1} elements differ, the first at {2}: {3} instead of {4}", wrong,
                       count, first, text(found), text(expected));
}

} // namespace heddle::trial
