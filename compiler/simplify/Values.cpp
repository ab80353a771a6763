// Values: what is known at compile time about the elements of a tensor.

#include "compiler/reference/Interpreter.h"
#include "compiler/simplify/Rewriting.h"

#include <cmath>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

static constexpr int kDepthLimit = 8;
static constexpr int64_t kElementLimit = int64_t(1) << 22;

ConstantOp constantUnder(Value value) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getX();
  return value.getDefiningOp<ConstantOp>();
}

std::optional<Magnitudes> magnitudesOf(Value value) {
  auto constant = constantUnder(value);
  Type element = elementOf(value);
  if (!constant || !isa<FloatType>(element))
    return std::nullopt;
  int64_t count = constant.getValue().getShapedType().getNumElements();
  if (count == 0 || count > kElementLimit)
    return std::nullopt;
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  Magnitudes result{INFINITY, 0, false};
  for (int64_t i = 0; i < count; ++i) {
    double number = std::abs(*elementAt(bytes, element, i));
    if (!std::isfinite(number))
      return std::nullopt;
    if (number != 0)
      result.smallest = std::min(result.smallest, number);
    result.hasZero |= number == 0;
    result.largest = std::max(result.largest, number);
  }
  return result;
}

static double largestOf(Type element) {
  return APFloat::getLargest(cast<FloatType>(element).getFloatSemantics()).convertToDouble();
}

bool isProductFinite(Value a, Value b) {
  if (!isFloat(a))
    return true;
  auto x = magnitudesOf(a), y = magnitudesOf(b);
  return x && y && x->largest * y->largest <= largestOf(elementOf(a));
}

static bool isNeverNegative(Value value, int depth) {
  if (auto number = splatOf(value))
    return *number >= 0;
  Operation *op = value.getDefiningOp();
  if (!op || !isFloat(value) || ++depth > kDepthLimit)
    return false;
  auto operand = [&](unsigned i) { return isNeverNegative(op->getOperand(i), depth); };
  if (op->hasTrait<NeverNegative>())
    return true;
  if (isa<MulOp>(op) && op->getOperand(0) == op->getOperand(1))
    return true;
  if (isa<MaxOp>(op))
    return operand(0) || operand(1);
  return (op->hasTrait<KeepsNonNegative>() || isRearrangement(op)) &&
         llvm::all_of(op->getOperands(), [&](Value each) { return isNeverNegative(each, depth); });
}

bool isNeverNegative(Value value) { return isNeverNegative(value, 0); }

bool hasPhases(ConvTransposeOp op) {
  return op.getGroups() == 1 && llvm::all_of(op.getDilations(), [](int64_t d) { return d == 1; });
}

using Known = llvm::DenseMap<Value, std::optional<reference::Tensor>>;

static std::optional<reference::Tensor> numbersOf(Value value, Known &known);

static std::optional<reference::Tensor> evaluated(Value value, Known &known) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<GraphDialect>(op->getDialect()) || !isMemoryEffectFree(op) ||
      op->hasTrait<Hosted>() || op->getNumRegions() ||
      !cast<RankedTensorType>(value.getType()).hasStaticShape())
    return std::nullopt;
  reference::Tensors operands;
  for (Value operand : op->getOperands()) {
    auto numbers = numbersOf(operand, known);
    if (!numbers)
      return std::nullopt;
    operands.push_back(*numbers);
  }
  reference::Environment environment;
  auto results = reference::evaluate(op, operands, environment);
  if (results)
    return (*results)[cast<OpResult>(value).getResultNumber()];
  llvm::consumeError(results.takeError());
  return std::nullopt;
}

/// Each value is computed once.
static std::optional<reference::Tensor> numbersOf(Value value, Known &known) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  auto numbers = evaluated(value, known);
  known[value] = numbers;
  return numbers;
}

std::optional<reference::Tensor> numbersOf(Value value) {
  Known known;
  return numbersOf(value, known);
}

} // namespace heddle::simplify
