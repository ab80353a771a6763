// Arithmetic: equations on elements. One function is one equation; the comment is its statement.
//
// c, d are constants. All are exact, but for the sign of a zero: none changes what a NaN or an
// infinity gives, or how a result is rounded. x * 0 = 0, x - x = 0 and, of floats, (x + c) + d =
// x + (c + d) are no equations here.

#include "compiler/simplify/Rules.h"

#include <cmath>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

using Rewriter = PatternRewriter;

LogicalResult replace(Operation *op, Value value, Rewriter &rewriter) {
  rewriter.replaceOp(op, value);
  return success();
}

/// c + x = x + c, for each op whose operands commute. Other rules look for c on the right.
template <typename Op> LogicalResult constantToTheRight(Op op, Rewriter &rewriter) {
  if (!isConstant(op.getX()) || isConstant(op.getY()))
    return failure();
  rewriter.replaceOpWithNewOp<Op>(op, op.getY(), op.getX());
  return success();
}

// x + 0 = x
LogicalResult addZero(AddOp op, Rewriter &rewriter) {
  return isSplat(op.getY(), 0) ? replace(op, op.getX(), rewriter) : failure();
}
// x - 0 = x
LogicalResult subZero(SubOp op, Rewriter &rewriter) {
  return isSplat(op.getY(), 0) ? replace(op, op.getX(), rewriter) : failure();
}
// x * 1 = x
LogicalResult mulOne(MulOp op, Rewriter &rewriter) {
  return isSplat(op.getY(), 1) ? replace(op, op.getX(), rewriter) : failure();
}
// x / 1 = x
LogicalResult divOne(DivOp op, Rewriter &rewriter) {
  return isSplat(op.getY(), 1) ? replace(op, op.getX(), rewriter) : failure();
}
// x >= c = true, where x is an index and c at most 0
LogicalResult indexAtLeast(GreaterEqualOp op, Rewriter &rewriter) {
  Value x = op.getX();
  while (auto *view = x.getDefiningOp())
    if (isa<ReshapeOp, BroadcastOp>(view))
      x = view->getOperand(0);
    else
      break;
  auto least = splatOf(op.getY());
  if (!x.getDefiningOp<IotaOp>() || !least || !(*least <= 0))
    return failure();
  Build build(rewriter, op);
  return replace(op, build.full(dimsOf(op.getResult()), elementOf(op.getResult()), 1), rewriter);
}
/// x and true = x, x and false = false; x or false = x, x or true = true.
template <typename Op> LogicalResult known(Op op, double neutral, Rewriter &rewriter) {
  auto truth = splatOf(op.getY());
  if (!truth)
    return failure();
  return replace(op, (*truth != 0) == (neutral != 0) ? op.getX() : op.getY(), rewriter);
}
LogicalResult andKnown(AndOp op, Rewriter &rewriter) { return known(op, 1, rewriter); }
LogicalResult orKnown(OrOp op, Rewriter &rewriter) { return known(op, 0, rewriter); }
// x ^ 1 = x
LogicalResult powOne(PowOp op, Rewriter &rewriter) {
  return isSplat(op.getY(), 1) ? replace(op, op.getX(), rewriter) : failure();
}
// x ^ 2 = x * x
LogicalResult powTwo(PowOp op, Rewriter &rewriter) {
  if (!isSplat(op.getY(), 2))
    return failure();
  rewriter.replaceOpWithNewOp<MulOp>(op, op.getX(), op.getX());
  return success();
}
// x ^ 0.5 = sqrt x where x >= 0: of -infinity they differ.
LogicalResult powHalf(PowOp op, Rewriter &rewriter) {
  if (!isSplat(op.getY(), 0.5) || !isNeverNegative(op.getX()))
    return failure();
  rewriter.replaceOpWithNewOp<SqrtOp>(op, op.getX());
  return success();
}
// x / 2^k = x * 2^-k, exactly
LogicalResult divPowerOfTwo(DivOp op, Rewriter &rewriter) {
  auto divisor = isFloat(op.getX()) ? splatOf(op.getY()) : std::nullopt;
  if (!divisor || !std::isfinite(*divisor) || *divisor == 0)
    return failure();
  int exponent;
  constexpr int kSafeExponent = 13; // the reciprocal is normal in every type from f16 on
  if (std::abs(std::frexp(*divisor, &exponent)) != 0.5 || std::abs(exponent) > kSafeExponent ||
      elementOf(op.getX()).getIntOrFloatBitWidth() < 16)
    return failure();
  Value factor = Build(rewriter, op).scalar(elementOf(op.getX()), 1 / *divisor);
  rewriter.replaceOpWithNewOp<MulOp>(op, op.getX(),
                                     Build(rewriter, op).broadcast(factor, dimsOf(op.getX())));
  return success();
}
// x - c = x + (-c), of floats: shape arithmetic keeps its form
LogicalResult subConstant(SubOp op, Rewriter &rewriter) {
  if (!isFloat(op.getX()) || !isConstant(op.getY()) || isConstant(op.getX()))
    return failure();
  rewriter.replaceOpWithNewOp<AddOp>(op, op.getX(), rewriter.create<NegOp>(op.getLoc(), op.getY()));
  return success();
}

/// (x ∘ c) ∘ d = x ∘ (c ∘ d)
template <typename Op> LogicalResult reassociate(Op op, Rewriter &rewriter) {
  auto inner = op.getX().template getDefiningOp<Op>();
  if (!inner || !inner->hasOneUse() || !isConstant(op.getY()) || !isConstant(inner.getY()) ||
      isConstant(inner.getX()))
    return failure();
  Value both = rewriter.create<Op>(op.getLoc(), inner.getY(), op.getY());
  rewriter.replaceOpWithNewOp<Op>(op, inner.getX(), both);
  return success();
}

// (x + c) + d = x + (c + d), of integers, which wrap
LogicalResult addAdd(AddOp op, Rewriter &rewriter) {
  return isFloat(op.getX()) ? failure() : reassociate(op, rewriter);
}
// (x * c) * d = x * (c * d), of integers
LogicalResult mulMul(MulOp op, Rewriter &rewriter) {
  return isFloat(op.getX()) ? failure() : reassociate(op, rewriter);
}
// max(max(x, c), d) = max(x, max(c, d)): relu(relu x) = relu x
LogicalResult maxMax(MaxOp op, Rewriter &rewriter) { return reassociate(op, rewriter); }
// min(min(x, c), d) = min(x, min(c, d))
LogicalResult minMin(MinOp op, Rewriter &rewriter) { return reassociate(op, rewriter); }

/// f(f x) = x
template <typename Op> LogicalResult involution(Op op, Rewriter &rewriter) {
  auto inner = op.getX().template getDefiningOp<Op>();
  return inner ? replace(op, inner.getX(), rewriter) : failure();
}
/// f(f x) = f x
template <typename Op> LogicalResult idempotent(Op op, Rewriter &rewriter) {
  auto inner = op.getX().template getDefiningOp<Op>();
  return inner ? replace(op, inner.getResult(), rewriter) : failure();
}

// select(c, x, y) = x or y, where c is one truth
LogicalResult selectKnown(SelectOp op, Rewriter &rewriter) {
  auto condition = splatOf(op.getCondition());
  return condition ? replace(op, *condition != 0 ? op.getX() : op.getY(), rewriter) : failure();
}
// select(c, x, x) = x
LogicalResult selectSame(SelectOp op, Rewriter &rewriter) {
  return op.getX() == op.getY() ? replace(op, op.getX(), rewriter) : failure();
}

// cast x = x, to its own type
LogicalResult castSame(CastOp op, Rewriter &rewriter) {
  return op.getX().getType() == op.getType() ? replace(op, op.getX(), rewriter) : failure();
}

/// Whether `to` holds every value of `from`.
bool isLossless(Type from, Type to) {
  auto isSigned = [](Type type) { return !type.isUnsignedInteger() && !type.isInteger(1); };
  if (isBits(from) || isBits(to))
    return from == to;
  unsigned bits = from.getIntOrFloatBitWidth(), room = to.getIntOrFloatBitWidth();
  auto narrow = dyn_cast<FloatType>(from), wide = dyn_cast<FloatType>(to);
  if (narrow && wide)
    return narrow == wide || wide.isF64() || (wide.isF32() && bits <= 16);
  if (narrow || to.isInteger(1))
    return from == to;
  if (wide) // an f16 reaches 65504 only, so integers of its precision fit, too
    return bits - isSigned(from) <= wide.getFPMantissaWidth();
  return isSigned(from) == isSigned(to) ? room >= bits : isSigned(to) && room > bits;
}

// cast(cast x) = cast x, where the inner cast loses nothing
LogicalResult castCast(CastOp op, Rewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<CastOp>();
  if (!inner || !isLossless(elementOf(inner.getX()), elementOf(inner.getResult())))
    return failure();
  rewriter.replaceOpWithNewOp<CastOp>(op, op.getType(), inner.getX(), op.getSaturateAttr());
  return success();
}

} // namespace

void addArithmeticRules(RewritePatternSet &patterns) {
  patterns.add(constantToTheRight<AddOp>)
      .add(constantToTheRight<MulOp>)
      .add(constantToTheRight<MaxOp>)
      .add(constantToTheRight<MinOp>)
      .add(constantToTheRight<AndOp>)
      .add(constantToTheRight<OrOp>);
  patterns.add(indexAtLeast).add(andKnown).add(orKnown);
  patterns.add(addZero).add(subZero).add(mulOne).add(divOne).add(powOne).add(powTwo).add(powHalf);
  patterns.add(divPowerOfTwo).add(subConstant).add(addAdd).add(mulMul).add(maxMax).add(minMin);
  patterns.add(involution<NegOp>).add(involution<NotOp>).add(involution<BitNotOp>);
  patterns.add(idempotent<AbsOp>).add(idempotent<FloorOp>).add(idempotent<CeilOp>);
  patterns.add(idempotent<RoundOp>).add(idempotent<TruncOp>).add(idempotent<SignOp>);
  patterns.add(selectKnown).add(selectSame).add(castSame).add(castCast);
}

} // namespace heddle::simplify
