// Operand: reads what importers spell as casts, differences and products with scales.

#include "compiler/simplify/quantized/Operand.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

constexpr int64_t kUniform = QuantizedOperand::kUniform;

bool isSmallInteger(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  return integer && integer.getWidth() <= 8 && integer.getWidth() > 1;
}

/// The operand of a broadcast, or the value itself.
Value sourceOf(Value wide) {
  auto broadcast = wide.getDefiningOp<BroadcastOp>();
  return broadcast ? broadcast.getX() : wide;
}

/// Along which axis of `wide` its elements differ: none, or one at most; else nullopt.
std::optional<int64_t> axisOf(Value wide) {
  Value source = sourceOf(wide);
  if (elementCount(dimsOf(source)).isConstant(1) || splatOf(wide))
    return kUniform;
  std::optional<int64_t> found;
  int64_t missing = rankOf(wide) - rankOf(source);
  for (auto [i, size] : llvm::enumerate(dimsOf(source))) {
    if (size.isConstant(1))
      continue;
    if (found)
      return std::nullopt;
    found = static_cast<int64_t>(i) + missing;
  }
  return found;
}

/// The axis of the result of `op`, which moves elements, that is this axis of its operand.
std::optional<int64_t> movedAxis(Operation *op, int64_t axis) {
  if (axis == kUniform)
    return axis;
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return inverse(transpose.getPermutation())[axis];
  // Accepts gained or lost leading sizes of 1, and repetition along them.
  int64_t more = rankOf(op->getResult(0)) - rankOf(op->getOperand(0));
  DimVector from = dimsOf(op->getOperand(0)), to = dimsOf(op->getResult(0));
  auto after = [](ArrayRef<Dim> sizes) {
    return sizes.drop_while([](const Dim &size) { return size.isConstant(1); });
  };
  bool isKept = isa<BroadcastOp>(op) || (isa<ReshapeOp>(op) && after(from) == after(to));
  return isKept && axis + more >= 0 ? std::optional<int64_t>(axis + more) : std::nullopt;
}

/// The ops that only move elements in front of a value: the value that they move.
Value throughMoves(Value value, QuantizedOperand &operand) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isRearrangement(op))
      break;
    operand.moves.push_back(op);
    value = op->getOperand(0);
  }
  return value;
}

/// Carries the axes over the moves.
bool moveAxes(QuantizedOperand &operand) {
  for (Operation *move : llvm::reverse(operand.moves)) {
    auto zero = movedAxis(move, operand.zeroAxis), scale = movedAxis(move, operand.scaleAxis);
    if (!zero || !scale)
      return false;
    operand.zeroAxis = *zero;
    operand.scaleAxis = *scale;
  }
  return true;
}

/// A small integer in i32, or how many bits are too many.
bool readStored(Value value, QuantizedOperand &operand, std::string *why) {
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast || !elementOf(value).isSignlessInteger(32))
    return false;
  operand.x = cast.getX();
  Type element = elementOf(operand.x);
  if (!isSmallInteger(element) && element.isIntOrFloat() && element.getIntOrFloatBitWidth() == 16)
    return refuse(why, "is of 16 bits, but products of integers take at most 8");
  return isSmallInteger(element);
}

bool readBase(Value value, QuantizedOperand &operand, std::string *why) {
  auto difference = value.getDefiningOp<SubOp>();
  if (!readStored(difference ? difference.getX() : value, operand, why))
    return false;
  if (!difference)
    return true;
  operand.zero = difference.getY();
  auto axis = axisOf(operand.zero);
  operand.zeroAxis = axis.value_or(kUniform);
  return axis || refuse(why, "has a zero point that differs along more than one axis");
}

/// Whether `value` dequantises elements that are floats of 8 bits or less.
bool isSmallFloat(Value value) {
  if (auto difference = value.getDefiningOp<SubOp>())
    value = difference.getX();
  auto cast = value.getDefiningOp<CastOp>();
  Type element = cast ? elementOf(cast.getX()) : Type();
  return element && (isFloat4(element) || isFloat8Scale(element) ||
                     (isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 8));
}

} // namespace

std::optional<double> numberOf(Value value) {
  if (auto known = splatOf(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<BroadcastOp, ReshapeOp>(op))
    return numberOf(op->getOperand(0));
  auto cast = dyn_cast_or_null<CastOp>(op);
  Type element = elementOf(value);
  bool isExact = cast && (element.isF32() || element.isSignlessInteger(32)) &&
                 isSmallInteger(elementOf(cast.getX()));
  return isExact ? numberOf(cast.getX()) : std::nullopt;
}

bool refuse(std::string *why, const Twine &text) {
  if (why)
    *why = text.str();
  return false;
}

std::string nameOf(Value value) {
  if (Operation *op = value.getDefiningOp())
    return (isa<ConstantOp>(op) ? "the constant '" : "the result of '") + sourceName(op->getLoc()) +
           "'";
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto name = function
                  ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "graph.name")
                  : StringAttr();
  return name ? "the input '" + name.str() + "'" : "what a loop or a branch is given";
}

std::optional<QuantizedOperand> readCentred(Value value, std::string *why) {
  QuantizedOperand operand;
  if (!readBase(throughMoves(value, operand), operand, why))
    return std::nullopt;
  if (moveAxes(operand))
    return operand;
  refuse(why, "has a zero point whose axis is moved in a way that cannot be followed");
  return std::nullopt;
}

std::optional<QuantizedOperand> readDequantized(Value value, std::string *why) {
  QuantizedOperand operand;
  auto product = throughMoves(value, operand).getDefiningOp<MulOp>();
  if (!product)
    return std::nullopt;
  if (isSmallFloat(product.getX())) {
    refuse(why, "is of floats, which no product of integers takes");
    return std::nullopt;
  }
  auto cast = product.getX().getDefiningOp<CastOp>();
  if (!cast)
    return std::nullopt;
  if (isSmallInteger(elementOf(cast.getX())))
    operand.x = cast.getX();
  else if (!readBase(cast.getX(), operand, why))
    return std::nullopt;
  if (!elementOf(cast.getResult()).isF32()) {
    std::string type;
    llvm::raw_string_ostream(type) << elementOf(cast.getResult());
    refuse(why, "is dequantised to " + type + ", but only f32 is taken apart again");
    return std::nullopt;
  }
  auto axis = axisOf(product.getY());
  operand.scale = product.getY();
  operand.scaleAxis = axis.value_or(kUniform);
  if (!axis)
    refuse(why, "has a scale that differs along more than one axis (as blocks have)");
  else if (moveAxes(operand))
    return operand;
  else
    refuse(why, "has a scale or zero point whose axis is moved in a way that cannot be followed");
  return std::nullopt;
}

Value parameterOf(OpBuilder &builder, Value wide) {
  if (auto number = splatOf(wide))
    return Build(builder, wide).scalar(elementOf(wide), *number);
  Value source = sourceOf(wide);
  return Build(builder, source).withoutOnes(source);
}

Value castTo(OpBuilder &builder, Value x, Type element) {
  if (elementOf(x) == element)
    return x;
  auto type = tensorOf(builder.getContext(), dimsOf(x), element);
  return builder.create<CastOp>(x.getLoc(), type, x);
}

Value splatLike(OpBuilder &builder, Value like, double number) {
  return Build(builder, like).full(dimsOf(like), elementOf(like), number);
}

Value storedOf(OpBuilder &builder, const QuantizedOperand &operand) {
  Value x = operand.x;
  if (elementOf(x).getIntOrFloatBitWidth() < 8) {
    auto bits = IntegerType::get(builder.getContext(), 8);
    x = castTo(builder, x, bits);
  }
  for (Operation *move : llvm::reverse(operand.moves))
    x = rebuild(builder, move, x,
                tensorOf(builder.getContext(), dimsOf(move->getResult(0)), elementOf(x)))
            ->getResult(0);
  return x;
}

Value centredOf(OpBuilder &builder, const QuantizedOperand &operand) {
  Value x = castTo(builder, storedOf(builder, operand), builder.getI32Type());
  if (!operand.zero)
    return x;
  Value zero = parameterOf(builder, operand.zero);
  return builder.create<SubOp>(x.getLoc(), x,
                               Build(builder, zero).along(zero, operand.zeroAxis, dimsOf(x)));
}

} // namespace heddle::simplify
