// Normalization: (x - mean) / sqrt(variance + epsilon) * scale + shift over trailing dimensions, in
// the ways in which exporters and importers write it.

#include "compiler/mechanism/Shapes.h"
#include "compiler/mechanism/foreign/Calls.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::Dim;
using graph::DimVector;

/// The value before it is broadcast or reshaped.
static Value bare(Value value) {
  for (Operation *op = value.getDefiningOp(); op; op = value.getDefiningOp()) {
    auto reshape = dyn_cast<graph::ReshapeOp>(op);
    if (!isa<graph::BroadcastOp>(op) && !(reshape && reshape.keepsIndices()))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static std::optional<double> numberOf(Value value) {
  auto constant = bare(value).getDefiningOp<graph::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!dense || !dense.isSplat() || !dense.getElementType().isF32())
    return std::nullopt;
  return dense.getSplatValue<APFloat>().convertToFloat();
}

/// Operands of a commutative op, so that `isFirst` holds for the first of them.
template <typename Op>
static std::optional<std::pair<Value, Value>> split(Value value,
                                                    llvm::function_ref<bool(Value)> isFirst) {
  auto op = value.getDefiningOp<Op>();
  if (!op)
    return std::nullopt;
  Value a = bare(op->getOperand(0)), b = bare(op->getOperand(1));
  if (isFirst(a))
    return std::make_pair(a, b);
  if (isFirst(b))
    return std::make_pair(b, a);
  return std::nullopt;
}

namespace {
class Matcher {
public:
  explicit Matcher(LibraryCall &call) : call(call) {}

  /// (x - mean(x)) / deviation, or times 1 / deviation.
  bool isNormal(Value value) {
    value = bare(value);
    Value centred, deviation;
    if (auto division = value.getDefiningOp<graph::DivOp>()) {
      centred = bare(division->getOperand(0));
      deviation = bare(division->getOperand(1));
    } else if (auto product = split<graph::MulOp>(value, [](Value side) {
                 auto inverse = side.getDefiningOp<graph::DivOp>();
                 return inverse && numberOf(inverse->getOperand(0)) == 1.0;
               })) {
      centred = product->second;
      deviation = bare(product->first.getDefiningOp()->getOperand(1));
    }
    return centred && isCentred(centred) && isDeviation(deviation, centred);
  }

private:
  /// The operand of a mean: a sum over trailing dimensions, divided by their number.
  Value meanOf(Value value) {
    value = bare(value);
    Value sum;
    std::optional<double> factor;
    if (auto division = value.getDefiningOp<graph::DivOp>()) {
      sum = bare(division->getOperand(0));
      if (auto number = numberOf(division->getOperand(1)))
        factor = 1 / *number;
    } else if (auto product = split<graph::MulOp>(
                   value, [](Value side) { return numberOf(side).has_value(); })) {
      sum = product->second;
      factor = numberOf(product->first);
    }
    auto fold = sum ? sum.getDefiningOp<graph::ReduceSumOp>() : graph::ReduceSumOp();
    if (!fold || !factor)
      return {};
    DimVector dims = graph::dimsOf(fold.getX());
    size_t axes = fold.getAxes().size();
    for (size_t i = dims.size() - axes; i < dims.size(); ++i)
      if (!llvm::is_contained(fold.getAxes(), (int64_t)i))
        return {};
    auto length = graph::elementCount(ArrayRef<Dim>(dims).take_back(axes)).constant();
    if (!length || *length == 0 || std::abs(*factor * *length - 1) > 1e-6)
      return {};
    if (call.axes && call.axes != (int64_t)axes)
      return {};
    call.axes = axes;
    return fold.getX();
  }

  bool isCentred(Value value) {
    auto difference = value.getDefiningOp<graph::SubOp>();
    if (!difference)
      return false;
    Value x = difference->getOperand(0), mean = meanOf(difference->getOperand(1));
    call.reads = {x};
    return mean && mean == x;
  }

  /// sqrt(mean(centred^2) + epsilon)
  bool isDeviation(Value value, Value centred) {
    auto root = value ? value.getDefiningOp<graph::SqrtOp>() : graph::SqrtOp();
    auto sum = root ? split<graph::AddOp>(bare(root->getOperand(0)),
                                          [](Value side) { return numberOf(side).has_value(); })
                    : std::nullopt;
    if (!sum)
      return false;
    call.epsilon = *numberOf(sum->first);
    Value square = meanOf(sum->second);
    if (!square)
      return false;
    if (auto product = square.getDefiningOp<graph::MulOp>())
      return bare(product->getOperand(0)) == centred && bare(product->getOperand(1)) == centred;
    auto power = square.getDefiningOp<graph::PowOp>();
    return power && bare(power->getOperand(0)) == centred && numberOf(power->getOperand(1)) == 2.0;
  }

  LibraryCall &call;
};
} // namespace

/// A vector over the reduced dimensions that memory holds.
static bool isVector(Value value, const LibraryCall &call, ArrayRef<Operation *> ops) {
  DimVector dims = graph::dimsOf(value), rows = graph::dimsOf(call.reads[0]);
  Operation *op = value.getDefiningOp();
  if ((op && llvm::is_contained(ops, op) && !isa<graph::ConstantOp>(op)) ||
      (int64_t)dims.size() < call.axes || dims.size() > rows.size())
    return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    bool isFolded = i + call.axes >= dims.size();
    if (isFolded ? dims[i] != rows[rows.size() - dims.size() + i] : !dims[i].isConstant(1))
      return false;
  }
  return true;
}

bool readNormalization(Ops ops, LibraryCall &call, std::string &why) {
  Value normal;
  for (Operation *op : ops) {
    LibraryCall found;
    if (isa<graph::DivOp, graph::MulOp>(op) && Matcher(found).isNormal(op->getResult(0))) {
      normal = op->getResult(0);
      call = found;
      break;
    }
  }
  if (!normal) {
    why = "it is no (x - mean) / sqrt(variance + epsilon) over trailing dimensions";
    return false;
  }
  // x alone is read from memory, then what scales and shifts.
  Value x = call.reads[0];
  call.result = normal;
  call.reads = {x, Value(), Value()};
  auto take = [&](auto tag, size_t place) {
    using Op = decltype(tag);
    Operation *user = call.result.hasOneUse() ? *call.result.getUsers().begin() : nullptr;
    if (!isa_and_nonnull<Op>(user) || !llvm::is_contained(ops, user))
      return;
    bool isLeft = user->getOperand(0) == call.result;
    Value vector = bare(user->getOperand(isLeft ? 1 : 0));
    if (!isVector(vector, call, ops))
      return;
    call.reads[place] = vector;
    call.result = user->getResult(0);
  };
  take(graph::MulOp(), 1);
  take(graph::AddOp(), 2);
  // The values inside may not be read by later ops, which are computed apart.
  for (Operation *op : ops) {
    if (op == call.result.getDefiningOp() || op->isBeforeInBlock(call.result.getDefiningOp()))
      continue;
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && operand != call.result && !graph::reducedAxes(producer).empty()) {
        why = "what follows reads a reduction of the normalisation";
        return false;
      }
    }
    if (!graph::isElementwise(op) && !isa<graph::BroadcastOp, graph::ConstantOp>(op)) {
      why = (op->getName().stripDialect() + " after it is not computed element by element").str();
      return false;
    }
  }
  return true;
}

} // namespace heddle::mechanism
