// Pairs: what follows a dequantised tensor and can be done before it, or not at all.

#include "compiler/simplify/quantized/Operand.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

/// Whether value / c can be spelled without a division behind a dequantised sum.
static bool isScaledSum(Value value, int depth = 0) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasOneUse() || depth > 4 || op->getNumOperands() != 2 ||
      !isConstant(op->getOperand(1)))
    return false;
  if (isa<AddOp, MaxOp, MinOp>(op))
    return isScaledSum(op->getOperand(0), depth + 1);
  auto cast = isa<MulOp>(op) ? op->getOperand(0).getDefiningOp<CastOp>() : nullptr;
  return cast && elementOf(cast.getX()).isSignlessInteger(32) && !readCentred(cast.getX());
}

static Value divided(PatternRewriter &rewriter, Value value, Value divisor) {
  Operation *op = value.getDefiningOp();
  Location location = op->getLoc();
  Value right = op->getOperand(1);
  Value small = constantUnder(right);
  Value by = broadcastTo(rewriter, location, divisor, dimsOf(small));
  Value quotient = rewriter.create<DivOp>(location, small, by);
  quotient = broadcastTo(rewriter, location, quotient, dimsOf(right));
  Value left = op->getOperand(0);
  if (!isa<MulOp>(op))
    left = divided(rewriter, left, divisor);
  return rebuild(rewriter, op, {left, quotient}, op->getResultTypes())->getResult(0);
}

LogicalResult quotientOfDequantized(DivOp op, PatternRewriter &rewriter) {
  constexpr double kLeast = 1e-30, kMost = 1e30; // quotients of usual scales stay finite
  auto number = splatOf(op.getY());
  if (!number || !elementOf(op.getResult()).isF32() || !(*number >= kLeast && *number <= kMost) ||
      !isScaledSum(op.getX()))
    return failure();
  Value divisor = scalar(rewriter, op.getLoc(), elementOf(op.getY()), *number);
  rewriter.replaceOp(op, divided(rewriter, op.getX(), divisor));
  return success();
}

/// Whether each window meets the image, so that the lowest value of a type is no result.
static bool areWindowsInside(PoolOp op) {
  for (size_t i = 0; i < op.getWindow().size(); ++i) {
    int64_t border = std::max(op.getLow()[i], op.getHigh()[i]);
    if (border >= op.getWindow()[i] || (border > 0 && op.getDilations()[i] != 1))
      return false;
  }
  return !op.getCeilMode();
}

LogicalResult poolOfDequantized(PoolOp op, PatternRewriter &rewriter) {
  if (op.getKind() != "max" || !areWindowsInside(op))
    return failure();
  auto operand = readDequantized(op.getX());
  auto scale = operand ? splatOf(operand->scale) : std::nullopt;
  if (!scale || !(*scale > 0) || !operand->isUniform())
    return failure();
  Value x = storedOf(rewriter, *operand);
  DimVector sizes = dimsOf(op.getResult());
  Type type = tensorOf(op.getContext(), sizes, elementOf(x));
  Value y = castTo(rewriter, rebuild(rewriter, op, x, type)->getResult(0), rewriter.getI32Type());
  if (operand->zero) {
    Value zero = spread(rewriter, parameterOf(rewriter, operand->zero), 0, sizes);
    y = rewriter.create<SubOp>(op.getLoc(), y, zero);
  }
  Value factor = spread(rewriter, parameterOf(rewriter, operand->scale), 0, sizes);
  rewriter.replaceOpWithNewOp<MulOp>(op, castTo(rewriter, y, elementOf(factor)), factor);
  return success();
}

/// The operand of an op whose other operand is one number, which is left in `number`.
template <typename Op> static Value beside(Value value, double &number) {
  auto op = value.getDefiningOp<Op>();
  auto known = op ? splatOf(op.getY()) : std::nullopt;
  number = known.value_or(0);
  return known ? op.getX() : Value();
}

LogicalResult quantisedOfDequantized(CastOp op, PatternRewriter &rewriter) {
  Type element = elementOf(op.getResult());
  if (!element.isInteger(8) || isBits(element) || !elementOf(op.getX()).isF32())
    return failure();
  bool isUnsigned = element.isUnsignedInteger();
  double top, bottom, zero, step;
  Value inner = beside<MinOp>(op.getX(), top);
  inner = inner ? beside<MaxOp>(inner, bottom) : inner;
  if (!inner || top != (isUnsigned ? 255 : 127) || bottom != (isUnsigned ? 0 : -128))
    return failure();
  if (Value sum = beside<AddOp>(inner, zero))
    inner = sum;
  auto round = inner.getDefiningOp<RoundOp>();
  Value quotient = round ? beside<DivOp>(round.getX(), step) : Value();
  if (round && !quotient) { // a power of two
    quotient = beside<MulOp>(round.getX(), step);
    step = 1 / step;
  }
  auto operand = quotient ? readDequantized(quotient) : std::nullopt;
  if (!operand || !operand->isUniform() || elementOf(operand->x) != element ||
      splatOf(operand->scale) != step || !(step > 1e-30 && step < 1e30))
    return failure();
  auto from = operand->zero ? splatOf(operand->zero) : std::optional<double>(0);
  if (from != zero)
    return failure();
  rewriter.replaceOp(op, storedOf(rewriter, *operand));
  return success();
}

} // namespace heddle::simplify
