// Extremes: maximumf and minimumf, which keep NaN and, unless `nsz` says that it does not matter,
// order -0 before +0. LLVM 19 loses NaN beside a zero on types that it expands, and does not see
// that a constant needs one instruction.

#include "compiler/target/cpu/Lower.h"
#include "compiler/target/cpu/math/FloatMath.h"

#include <limits>

using namespace mlir;

namespace heddle::cpu {
namespace {

using C = FloatMath::Compare;

/// x86's max and min give back their second operand where one is NaN or both are equal.
Value hardware(FloatMath &f, bool isMax, Value first, Value second) {
  return f.select(f.is(isMax ? C::OGT : C::OLT, first, second), first, second);
}

Value general(FloatMath &f, bool isMax, bool keepsZeros, Value x, Value y) {
  Value result = hardware(f, isMax, x, y), isNan = f.is(C::UNO, x, x);
  if (!keepsZeros) // x in place of the constant would make one choice of both, but a longer one
    return f.select(isNan, f.constant(std::numeric_limits<double>::quiet_NaN()), result);
  // Equal numbers differ only if they are zeros, in their signs.
  Value merged = isMax ? Value(f.make<arith::AndIOp>(f.toBits(x), f.toBits(y)))
                       : f.make<arith::OrIOp>(f.toBits(x), f.toBits(y));
  return f.select(isNan, x, f.select(f.is(C::OEQ, x, y), f.fromBits(merged), result));
}

/// A constant as first operand keeps NaN by itself; zeros want care.
Value withConstant(FloatMath &f, bool isMax, bool keepsZeros, Value x, Value constant,
                   const APFloat &number) {
  if (number.isNaN() || (number.isZero() && !isMax && number.isNegative()))
    return general(f, isMax, keepsZeros, x, constant);
  Value result = hardware(f, isMax, constant, x);
  // -0 + 0 is 0; nothing else changes.
  bool isRelu = number.isPosZero() && isMax;
  return isRelu && keepsZeros ? f.add(result, constant) : result;
}

template <typename Op> struct ExpandExtreme : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF32() && !element.isF64())
      return failure();
    constexpr bool isMax = std::is_same_v<Op, arith::MaximumFOp>;
    bool keepsZeros = !bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::nsz);
    FloatMath f(rewriter, op.getLoc(), op.getType());
    Value x = op.getLhs(), y = op.getRhs();
    APFloat number(0.0);
    if (matchPattern(y, m_ConstantFloat(&number)))
      rewriter.replaceOp(op, withConstant(f, isMax, keepsZeros, x, y, number));
    else if (matchPattern(x, m_ConstantFloat(&number)))
      rewriter.replaceOp(op, withConstant(f, isMax, keepsZeros, y, x, number));
    else
      rewriter.replaceOp(op, general(f, isMax, keepsZeros, x, y));
    return success();
  }
};

} // namespace

void populateExtremesPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandExtreme<arith::MaximumFOp>, ExpandExtreme<arith::MinimumFOp>>(
      patterns.getContext());
}

} // namespace heddle::cpu
