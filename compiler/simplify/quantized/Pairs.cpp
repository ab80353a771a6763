// Pairs: what follows a dequantised tensor and can be done before it, or not at all.

#include "compiler/simplify/quantized/Operand.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

/// Whether value / c can be spelled without a division after a dequantised sum.
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
  Value by = Build(rewriter, location).broadcast(divisor, dimsOf(small));
  Value quotient = rewriter.create<DivOp>(location, small, by);
  quotient = Build(rewriter, location).broadcast(quotient, dimsOf(right));
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
  Value divisor = Build(rewriter, op).scalar(elementOf(op.getY()), *number);
  rewriter.replaceOp(op, divided(rewriter, op.getX(), divisor));
  return success();
}

/// Whether each window meets the image, so that the lowest value of a type is no result. Counts
/// that are rounded up let the last window begin up to a stride later.
static bool areWindowsInside(PoolOp op) {
  for (size_t i = 0; i < op.getWindow().size(); ++i) {
    int64_t late = op.getCeilMode() ? op.getStrides()[i] - 1 : 0;
    int64_t border = std::max(op.getLow()[i], op.getHigh()[i] + late);
    if (border >= op.getWindow()[i] || (border > 0 && op.getDilations()[i] != 1))
      return false;
  }
  return true;
}

std::optional<QuantizedOperand> readPooled(PoolOp op, std::string *why) {
  auto operand = readDequantized(op.getX(), why);
  if (op.getKind() != "max" || !operand)
    return std::nullopt;
  auto scale = splatOf(operand->scale);
  if (!areWindowsInside(op))
    refuse(why, "has a window that may lie outside of the image");
  else if (!operand->isUniform())
    refuse(why, "has a scale or zero point that differs along an axis");
  else if (!scale)
    refuse(why, "has a scale that is computed at run time, which may be below 0");
  else if (!(*scale > 0))
    refuse(why, "has a scale that is not above 0");
  else
    return operand;
  return std::nullopt;
}

LogicalResult poolOfDequantized(PoolOp op, PatternRewriter &rewriter) {
  auto operand = readPooled(op);
  if (!operand)
    return failure();
  Value x = storedOf(rewriter, *operand);
  DimVector sizes = dimsOf(op.getResult());
  Type type = tensorOf(op.getContext(), sizes, elementOf(x));
  Value y = castTo(rewriter, rebuild(rewriter, op, x, type)->getResult(0), rewriter.getI32Type());
  if (operand->zero) {
    Value zero = parameterOf(rewriter, operand->zero);
    zero = Build(rewriter, zero).along(zero, 0, sizes);
    y = rewriter.create<SubOp>(op.getLoc(), y, zero);
  }
  Value factor = parameterOf(rewriter, operand->scale);
  factor = Build(rewriter, factor).along(factor, 0, sizes);
  rewriter.replaceOpWithNewOp<MulOp>(op, castTo(rewriter, y, elementOf(factor)), factor);
  return success();
}

LogicalResult poolOfBounded(PoolOp op, PatternRewriter &rewriter) {
  auto bounded = op.getX().getDefiningOp<MaxOp>();
  auto least = bounded ? splatOf(bounded.getY()) : std::nullopt;
  if (!least || op.getKind() != "max" || !areWindowsInside(op) || !readDequantized(bounded.getX()))
    return failure();
  Value pooled = rebuild(rewriter, op, bounded.getX(), op.getType())->getResult(0);
  rewriter.replaceOpWithNewOp<MaxOp>(op, pooled, splatLike(rewriter, pooled, *least));
  return success();
}

/// The operand of an op whose other operand is one number, which is left in `number`.
template <typename Op> static Value beside(Value value, double &number) {
  auto op = value.getDefiningOp<Op>();
  auto known = op ? splatOf(op.getY()) : std::nullopt;
  number = known.value_or(0);
  return known ? op.getX() : Value();
}

namespace {

/// x, and what it is divided by, of quantise(x / step).
struct Quotient {
  Value x, step;
  std::optional<double> known; // the step, if it is one constant
};

} // namespace

static std::optional<Quotient> quotientUnder(Value rounded) {
  auto round = rounded.getDefiningOp<RoundOp>();
  if (!round)
    return std::nullopt;
  if (auto quotient = round.getX().getDefiningOp<DivOp>())
    return Quotient{quotient.getX(), quotient.getY(), numberOf(quotient.getY())};
  double factor;
  Value x = beside<MulOp>(round.getX(), factor); // a power of two
  return x ? std::optional<Quotient>({x, {}, 1 / factor}) : std::nullopt;
}

/// Whether 8 bits of one scale and zero point become those of the same ones.
static bool isSameStep(CastOp op, const QuantizedOperand &operand, const Quotient &quotient,
                       std::optional<double> zero, std::string *why) {
  constexpr double kLeast = 1e-30, kMost = 1e30;
  auto step = numberOf(operand.scale);
  auto from = operand.zero ? numberOf(operand.zero) : std::optional<double>(0);
  if (!operand.isUniform() || (quotient.step && !quotient.known && isConstant(quotient.step)))
    return refuse(why, "has a scale or zero point that differs along an axis");
  if (!step || !from || !quotient.known || !zero)
    return refuse(why, "has a scale or zero point that is computed at run time");
  if (step != quotient.known)
    return refuse(why, "is quantised again with another scale");
  if (elementOf(operand.x) != elementOf(op.getResult()))
    return refuse(why, "is quantised again with another type");
  if (from != zero)
    return refuse(why, "is quantised again with another zero point");
  return (*step > kLeast && *step < kMost) || refuse(why, "has a scale below 1e-30 or above 1e30");
}

std::optional<Quantization> readQuantization(CastOp op) {
  Type element = elementOf(op.getResult());
  if (!element.isInteger(8) || !elementOf(op.getX()).isF32())
    return std::nullopt;
  bool isUnsigned = element.isUnsignedInteger();
  double top, bottom;
  Value inner = beside<MinOp>(op.getX(), top);
  inner = inner ? beside<MaxOp>(inner, bottom) : inner;
  if (!inner || top != (isUnsigned ? 255 : 127) || bottom != (isUnsigned ? 0 : -128))
    return std::nullopt;
  auto sum = inner.getDefiningOp<AddOp>();
  Value rounded = sum ? sum.getX() : inner;
  if (!rounded.getDefiningOp<RoundOp>())
    return std::nullopt;
  return Quantization{rounded, sum ? numberOf(sum.getY()) : std::optional<double>(0)};
}

std::optional<QuantizedOperand> readRequantized(CastOp op, std::string *why) {
  auto made = readQuantization(op);
  auto quotient = made ? quotientUnder(made->rounded) : std::nullopt;
  auto operand = quotient ? readDequantized(quotient->x, why) : std::nullopt;
  if (!operand || !isSameStep(op, *operand, *quotient, made->zero, why))
    return std::nullopt;
  return operand;
}

LogicalResult quantisedOfDequantized(CastOp op, PatternRewriter &rewriter) {
  auto operand = readRequantized(op);
  if (!operand)
    return failure();
  rewriter.replaceOp(op, storedOf(rewriter, *operand));
  return success();
}

LogicalResult quantisedOfConcat(CastOp op, PatternRewriter &rewriter) {
  if (!readQuantization(op))
    return failure();
  SmallVector<Operation *> steps{op}; // from the last one
  Operation *step = op.getX().getDefiningOp();
  for (; step && !isa<ConcatOp>(step); step = step->getOperand(0).getDefiningOp()) {
    if (!step->hasTrait<Elementwise>() || !step->hasOneUse() ||
        !llvm::all_of(step->getOperands().drop_front(), numberOf))
      return failure();
    steps.push_back(step);
  }
  if (!step || !step->hasOneUse())
    return failure();
  auto concat = cast<ConcatOp>(step);
  SmallVector<Value> parts;
  for (Value part : concat.getXs()) {
    for (Operation *each : llvm::reverse(steps)) {
      SmallVector<Value> operands{part};
      for (Value beside : each->getOperands().drop_front())
        operands.push_back(
            Build(rewriter, each).full(dimsOf(part), elementOf(beside), *numberOf(beside)));
      Type type = tensorOf(op.getContext(), dimsOf(part), elementOf(each->getResult(0)));
      part = rebuild(rewriter, each, operands, type)->getResult(0);
    }
    parts.push_back(part);
  }
  rewriter.replaceOpWithNewOp<ConcatOp>(op, op.getType(), parts, concat.getAxis());
  return success();
}

} // namespace heddle::simplify
