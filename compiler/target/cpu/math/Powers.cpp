// Powers: powers and rounding. f32 powers are computed in f64: the logarithm's error is
// multiplied by the exponent, up to 88, and must not show.

#include "compiler/target/cpu/Lower.h"
#include "compiler/target/cpu/math/FloatMath.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"

#include <limits>

using namespace mlir;

namespace heddle::cpu {
namespace {

using C = FloatMath::Compare;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// log(x) in f64 for x that came from f32, x >= 0, to about 2^-40.
Value wideLog(FloatMath &d, Value x) {
  constexpr int64_t rootHalf = 0x3fe6a09e667f3bcd;
  Value shifted = d.make<arith::SubIOp>(d.toBits(x), d.bits(rootHalf));
  Type i32 = d.like(d.b.getI32Type());
  Value exponent = d.make<arith::TruncIOp>(i32, d.make<arith::ShRUIOp>(shifted, d.bits(32)));
  FloatMath f = d.as(d.b.getF32Type());
  exponent = d.make<arith::SIToFPOp>(d.type, f.make<arith::ShRSIOp>(exponent, f.bits(20)));
  Value mantissa = d.fromBits(d.make<arith::AddIOp>(
      d.make<arith::AndIOp>(shifted, d.bits(0xfffffffffffff)), d.bits(rootHalf)));
  Value one = d.constant(1);
  Value s = d.div(d.sub(mantissa, one), d.add(mantissa, one)), z = d.mul(s, s);
  Value p = d.horner(z, {2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0});
  Value y = d.fma(exponent, d.constant(0.693147180559945309), d.mul(s, p));
  y = d.select(d.is(C::OEQ, x, d.constant(infinity)), x, y);
  y = d.select(d.is(C::UNO, x, x), x, y);
  return d.select(d.is(C::OEQ, x, d.constant(0)), d.constant(-infinity), y);
}

/// e^x in f64 for a result that goes to f32, to about 2^-32.
Value wideExp(FloatMath &d, Value x) {
  Value clamped = d.atMost(d.atLeast(x, -700), 700);
  Value magic = d.constant(6755399441055744.0);
  Value sum = d.fma(clamped, d.constant(1.44269504088896341), magic);
  Value n = d.sub(sum, magic);
  Value r = d.fma(n, d.constant(-0.693147180559945309), clamped);
  Value p = d.horner(r, {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
                         1.0 / 6, 0.5, 1.0, 1.0});
  Value y = d.fromBits(
      d.make<arith::AddIOp>(d.toBits(p), d.make<arith::ShLIOp>(d.toBits(sum), d.bits(52))));
  return d.select(d.is(C::UNO, x, x), x, y);
}

/// C's pow, with all of its special cases.
Value power(FloatMath &f, Value x, Value y) {
  FloatMath d = f.as(f.b.getF64Type());
  auto widen = [&](Value v) -> Value { return f.make<arith::ExtFOp>(d.type, v); };
  auto truncated = [&](Value v) -> Value { return f.make<math::TruncOp>(v); };
  Value ax = f.abs(x), one = f.constant(1);
  Value wide = wideExp(d, d.mul(widen(y), wideLog(d, widen(ax))));
  Value result = f.make<arith::TruncFOp>(f.type, wide);

  Value whole = f.is(C::OEQ, truncated(y), y), half = f.mul(y, f.constant(0.5));
  Value odd = f.make<arith::AndIOp>(whole, f.is(C::UNE, truncated(half), half));
  Value sign = f.make<arith::AndIOp>(f.toBits(x), f.bits(0x80000000));
  Value bits = f.select(odd, sign, f.bits(0));
  result = f.fromBits(f.make<arith::XOrIOp>(f.toBits(result), bits));
  Value finiteNegative =
      f.make<arith::AndIOp>(f.is(C::OLT, x, f.constant(0)), f.is(C::OGT, x, f.constant(-infinity)));
  Value fraction = f.is(C::ONE, truncated(y), y);
  result = f.select(f.make<arith::AndIOp>(finiteNegative, fraction),
                    f.constant(std::numeric_limits<double>::quiet_NaN()), result);
  Value unit =
      f.make<arith::AndIOp>(f.is(C::OEQ, ax, one), f.is(C::OEQ, f.abs(y), f.constant(infinity)));
  unit = f.make<arith::OrIOp>(unit, f.is(C::OEQ, x, one));
  unit = f.make<arith::OrIOp>(unit, f.is(C::OEQ, y, f.constant(0)));
  return f.select(unit, one, result);
}

struct ExpandPower : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    FloatMath f(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, power(f, op.getLhs(), op.getRhs()));
    return success();
  }
};

/// Halves away from zero; no x86 instruction does that.
struct ExpandRound : OpRewritePattern<math::RoundOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::RoundOp op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF32() && !element.isF64())
      return failure();
    FloatMath f(rewriter, op.getLoc(), op.getType());
    Value x = op.getOperand();
    Value whole = rewriter.create<math::TruncOp>(op.getLoc(), x);
    Value far = f.is(C::OGE, f.abs(f.sub(x, whole)), f.constant(0.5));
    Value next = f.add(whole, f.withSignOf(f.constant(1), x));
    rewriter.replaceOp(op, f.withSignOf(f.select(far, next, whole), x));
    return success();
  }
};

/// Powers that are roots. Unlike a root, a power of minus infinity is that of infinity, and one of
/// -0 that of 0.
struct ExpandRootPower : OpRewritePattern<math::PowFOp> {
  explicit ExpandRootPower(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/2) {}
  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter &rewriter) const override {
    APFloat number(0.0);
    Type element = getElementTypeOrSelf(op.getType());
    if ((!element.isF32() && !element.isF64()) ||
        !matchPattern(op.getRhs(), m_ConstantFloat(&number)))
      return failure();
    double exponent = number.convertToDouble();
    if (exponent != 0.5 && exponent != -0.5 && exponent != 0.75)
      return failure();
    FloatMath f(rewriter, op.getLoc(), op.getType());
    Value x = op.getLhs(), limit = f.constant(infinity);
    x = f.add(f.select(f.is(C::OEQ, x, f.constant(-infinity)), limit, x), f.constant(0));
    Value root = f.sqrt(x);
    if (exponent == 0.75)
      root = f.mul(root, f.sqrt(root));
    rewriter.replaceOp(op, exponent < 0 ? f.div(f.constant(1), root) : root);
    return success();
  }
};

} // namespace

void populatePowerPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandPower, ExpandRootPower, ExpandRound>(patterns.getContext());
  populateExpandFPowIPattern(patterns);
}

} // namespace heddle::cpu
