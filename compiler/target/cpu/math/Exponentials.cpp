// Exponentials: exponentials, logarithms, hyperbolic functions and erf on f32. Polynomials are
// those of Cephes and Eigen where nothing else is said; every function keeps NaN and gives the
// limits at infinity.

#include "compiler/target/cpu/Lower.h"
#include "compiler/target/cpu/math/FloatMath.h"

#include <limits>

using namespace mlir;

namespace heddle::cpu {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double expLow = -87.33654, expHigh = 88.72283; // range of results that are normal numbers
constexpr double expLowest = -103.97209;                 // least one whose result is not 0
constexpr double log2e = 1.44269504088896341, ln2 = 0.693147180559945309;
constexpr double ln2Head = 0.693359375, ln2Tail = -2.12194440e-4; // n * ln2Head is exact

/// Integer part and remainder: x = n ln 2 + r, n as a float without its fraction.
struct Reduced {
  Value n, r;
};
Value remainderByLn2(FloatMath &f, Value x, Value n) {
  return f.fma(n, f.constant(-ln2Tail), f.fma(n, f.constant(-ln2Head), x));
}
Reduced reduceByLn2(FloatMath &f, Value x) {
  Value magic = f.constant(12582912.0); // 1.5 * 2^23: the sum has no room for a fraction
  Value n = f.sub(f.fma(x, f.constant(log2e), magic), magic);
  return {n, remainderByLn2(f, x, n)};
}

/// e^r - 1 - r over r^2, -ln 2 / 2 <= r <= ln 2: fitted so that e^r is 8e-10 off up to ln 2 / 2,
/// 4e-9 beyond.
Value expTail(FloatMath &f, Value r) {
  return f.horner(r, {2.252288756e-4, 1.389919476e-3, 8.327750333e-3, 4.166688355e-2,
                      1.666669481e-1, 4.999999949e-1});
}

/// e^r, of the same r.
Value expOfRemainder(FloatMath &f, Value r) {
  return f.fma(f.fma(expTail(f, r), r, f.constant(1)), r, f.constant(1));
}

/// y * 2^n through the exponent's bits: right while y * 2^n is a normal number.
Value scaleByPower(FloatMath &f, Value y, Value n) {
  Value shifted = f.make<arith::ShLIOp>(f.toInt(n), f.bits(23));
  return f.fromBits(f.make<arith::AddIOp>(f.toBits(y), shifted));
}

/// y * 2^n for n below 128, where y is about 1: also where that is below the normal numbers, if
/// they are kept.
Value scaleDown(FloatMath &f, Value y, Value n) {
  if (!f.scaling.keepsSubnormals)
    return scaleByPower(f, y, n);
  Value magic = f.constant(12582912.0);
  Value half = f.sub(f.fma(n, f.constant(0.5), magic), magic);
  return f.mul(scaleByPower(f, y, half), scaleByPower(f, f.constant(1), f.sub(n, half)));
}

/// The least argument whose exponential is not 0, given where that is no normal number any more and
/// where it is none at all.
double lowest(FloatMath &f, double normal, double subnormal) {
  return f.scaling.keepsSubnormals ? subnormal : normal;
}

Value limitExp(FloatMath &f, Value x, Value result, double low) {
  result = f.select(f.is(FloatMath::Compare::UGT, x, f.constant(expHigh)),
                    f.add(x, f.constant(infinity)), result);
  return f.select(f.is(FloatMath::Compare::OLT, x, f.constant(low)), f.constant(0), result);
}

Value exp2(FloatMath &f, Value x) {
  double low = lowest(f, -126, -150);
  Value clamped = f.atMost(f.atLeast(x, low), 127.99999);
  Value magic = f.constant(12582912.0);
  Value n = f.sub(f.add(clamped, magic), magic);
  Value r = f.mul(f.sub(clamped, n), f.constant(ln2));
  Value result = scaleDown(f, expOfRemainder(f, r), n);
  result = f.select(f.is(FloatMath::Compare::UGE, x, f.constant(128)),
                    f.add(x, f.constant(infinity)), result);
  return f.select(f.is(FloatMath::Compare::OLT, x, f.constant(low)), f.constant(0), result);
}

/// log(x) from the parts of `splitLog`, for all x; `scale` is log(2) in the base.
Value finishLog(FloatMath &f, Value x, Value finite) {
  using C = FloatMath::Compare;
  Value result = f.select(f.is(C::OEQ, x, f.constant(infinity)), x, finite);
  result = f.select(f.is(C::OEQ, x, f.constant(0)), f.constant(-infinity), result);
  Value invalid = f.is(C::ULT, x, f.constant(0));
  return f.select(invalid, f.constant(std::numeric_limits<double>::quiet_NaN()), result);
}

Value log2(FloatMath &f, Value x) {
  auto [fraction, exponent] = f.splitLog(x);
  return finishLog(f, x, f.fma(fraction, f.constant(log2e), exponent));
}

Value log10(FloatMath &f, Value x) {
  auto [fraction, exponent] = f.splitLog(x);
  Value low =
      f.fma(exponent, f.constant(4.60503898e-6), f.mul(fraction, f.constant(0.434294481903251828)));
  return finishLog(f, x, f.fma(exponent, f.constant(0.301025390625), low));
}

/// A rational function of Eigen's form, fitted to [0, 8.6] with both polynomials 1 at 0: odd, and x
/// itself near 0 (5 ulp off at most). Its bound is where it rounds to 1, so that 1 + tanh(x) of a
/// large negative x, which Gelu multiplies by x, is 0.
Value tanh(FloatMath &f, Value x) {
  Value a = f.atMost(f.atLeast(x, -8.00931453705), 8.00931453705);
  Value a2 = f.mul(a, a);
  Value p = f.horner(a2, {-9.68964424e-14, 5.72603458e-11, -2.11241034e-08, 1.13706938e-05,
                          3.12440284e-03, 1.31022587e-01, 1});
  Value q = f.horner(a2, {2.57605338e-04, 2.45764181e-02, 4.64355886e-01, 1});
  return f.div(f.mul(a, p), q);
}

/// Eigen's rational function on [-4, 4]; 1 beyond.
Value erf(FloatMath &f, Value x) {
  Value a = f.atMost(f.atLeast(x, -4), 4);
  Value a2 = f.mul(a, a);
  Value p = f.horner(a2, {-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06,
                          -5.69250639462346e-05, -7.34990630326855e-04, -2.95459980854025e-03,
                          -1.60960333262415e-02});
  Value q = f.horner(a2, {-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
                          -7.37332916720468e-03, -1.42647390514189e-02});
  return f.div(f.mul(a, p), q);
}

Value sinh(FloatMath &f, Value x) {
  Value a = f.abs(x), a2 = f.mul(a, a);
  Value p = f.horner(a2, {2.03721912945e-4, 8.33028376239e-3, 1.66667160211e-1});
  Value small = f.fma(f.mul(p, a2), x, x);
  // The half argument's square overflows where the result does, and not before.
  Value h = f.exp(f.mul(a, f.constant(0.5)));
  Value large = f.sub(f.mul(f.mul(h, f.constant(0.5)), h), f.div(f.constant(0.5), f.mul(h, h)));
  return f.select(f.is(FloatMath::Compare::OLT, a, f.constant(1)), small, f.withSignOf(large, x));
}

Value cosh(FloatMath &f, Value x) {
  Value h = f.exp(f.mul(f.abs(x), f.constant(0.5)));
  return f.add(f.mul(f.mul(h, f.constant(0.5)), h), f.div(f.constant(0.5), f.mul(h, h)));
}

Value asinh(FloatMath &f, Value x) {
  Value a = f.abs(x), a2 = f.mul(a, a), one = f.constant(1);
  Value near = f.log1p(f.add(a, f.div(a2, f.add(one, f.sqrt(f.add(a2, one))))));
  Value far = f.add(f.log(a), f.constant(ln2));
  return f.withSignOf(f.select(f.is(FloatMath::Compare::OLT, a, f.constant(1e9)), near, far), x);
}

Value acosh(FloatMath &f, Value x) {
  Value t = f.sub(x, f.constant(1));
  Value near = f.log1p(f.add(t, f.sqrt(f.fma(t, t, f.add(t, t)))));
  Value far = f.add(f.log(x), f.constant(ln2));
  Value result = f.select(f.is(FloatMath::Compare::OGT, x, f.constant(1e9)), far, near);
  return f.select(f.is(FloatMath::Compare::OLT, x, f.constant(1)),
                  f.constant(std::numeric_limits<double>::quiet_NaN()), result);
}

Value atanh(FloatMath &f, Value x) {
  Value a = f.abs(x);
  Value y = f.log1p(f.div(f.add(a, a), f.sub(f.constant(1), a)));
  return f.withSignOf(f.mul(y, f.constant(0.5)), x);
}

} // namespace

bool FloatMath::canScale() const {
  auto vector = dyn_cast<VectorType>(type);
  return scaling.avx512 && vector && vector.getRank() == 1 && element().isF32() &&
         llvm::is_contained({4, 8, 16}, vector.getDimSize(0));
}

Value FloatMath::scale(Value y, Value n) {
  int64_t lanes = cast<VectorType>(type).getDimSize(0);
  auto integer = [&](unsigned width, int64_t value) -> Value {
    return b.create<arith::ConstantOp>(loc, b.getIntegerAttr(b.getIntegerType(width), value));
  };
  SmallVector<Value> operands = {y, n, y, integer(lanes == 16 ? 16 : 8, -1)};
  if (lanes == 16)
    operands.push_back(integer(32, 4)); // round as the thread does
  std::string name = "llvm.x86.avx512.mask.scalef.ps." + std::to_string(32 * lanes);
  return b.create<LLVM::CallIntrinsicOp>(loc, type, b.getStringAttr(name), operands).getResults();
}

/// e^x by the polynomial and one product, for all x, where results below the normal numbers may be
/// 0. Bits of n + 127 are 2^n from 0, at n = -127, on. n stops at 127: what is left of x then grows
/// past ln 2 / 2, and the product goes on to infinity by itself.
static Value expOfNormals(FloatMath &f, Value x) {
  Value above = f.atLeast(x, -88);
  Value magic = f.constant(12582912.0 + 127); // as in reduceByLn2
  Value biased = f.fma(f.atMost(above, 88.02), f.constant(log2e), magic);
  Value y = expOfRemainder(f, remainderByLn2(f, above, f.sub(biased, magic)));
  return f.mul(y, f.fromBits(f.make<arith::ShLIOp>(f.toBits(biased), f.bits(23))));
}

Value FloatMath::exp(Value x) {
  // An instruction that scales finds 0 and infinity by itself; x only stays where n is exact.
  bool scales = canScale();
  if (!scales && !scaling.keepsSubnormals)
    return expOfNormals(*this, x);
  Reduced reduced =
      reduceByLn2(*this, atMost(atLeast(x, scales ? -110 : expLowest), scales ? 89 : expHigh));
  Value y = expOfRemainder(*this, reduced.r);
  if (scales)
    return scale(y, reduced.n);
  return limitExp(*this, x, scaleDown(*this, y, reduced.n), expLowest);
}

Value FloatMath::expm1(Value x) {
  Reduced reduced = reduceByLn2(*this, atMost(atLeast(x, expLow), expHigh));
  Value r = reduced.r;
  Value minusOne = fma(expTail(*this, r), mul(r, r), r);
  Value large =
      limitExp(*this, x, scaleByPower(*this, add(minusOne, constant(1)), reduced.n), expLow);
  Value power = scaleByPower(*this, constant(1), reduced.n);
  Value small = fma(power, minusOne, sub(power, constant(1)));
  small = select(is(Compare::OEQ, reduced.n, constant(0)), minusOne, small);
  small = select(is(Compare::OLT, x, constant(-20)), constant(-1), small);
  // minusOne is +0 at -0.
  small = select(is(Compare::OEQ, x, constant(0)), x, small);
  return select(is(Compare::OLT, x, constant(30)), small, large);
}

std::pair<Value, Value> FloatMath::splitLog(Value x) {
  Value tiny = is(Compare::OLT, x, constant(1.17549435e-38));
  Value normal = select(tiny, mul(x, constant(8388608)), x);
  // The mantissa goes to [sqrt(1/2), sqrt(2)).
  Value shifted = make<arith::SubIOp>(toBits(normal), bits(0x3f3504f3));
  Value exponent = fromInt(make<arith::ShRSIOp>(shifted, bits(23)));
  exponent = sub(exponent, select(tiny, constant(23), constant(0)));
  Value mantissa =
      fromBits(make<arith::AddIOp>(make<arith::AndIOp>(shifted, bits(0x7fffff)), bits(0x3f3504f3)));
  Value m = sub(mantissa, constant(1)), m2 = mul(m, m);
  Value p = horner(m, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
                       1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
                       3.3333331174e-1});
  Value tail = fma(mul(p, m), m2, mul(m2, constant(-0.5)));
  return {add(m, tail), exponent};
}

Value FloatMath::log(Value x) {
  auto [fraction, exponent] = splitLog(x);
  Value low = fma(exponent, constant(ln2Tail), fraction);
  return finishLog(*this, x, fma(exponent, constant(ln2Head), low));
}

/// log(1 + x), corrected for the rounding of the sum.
Value FloatMath::log1p(Value x) {
  Value one = constant(1), u = add(one, x);
  // The larger of 1 and x survives the sum best; the lost part is the other one's.
  Value lost = select(is(Compare::OLT, x, one), sub(x, sub(u, one)), sub(one, sub(u, x)));
  Value y = log(u);
  Value corrected = add(y, div(lost, u));
  Value inRange = make<arith::AndIOp>(is(Compare::OGT, u, constant(0)),
                                      is(Compare::OLT, u, constant(infinity)));
  Value result = select(inRange, corrected, y);
  return select(is(Compare::OLT, abs(x), constant(1e-7)), x, result);
}

void populateExpPatterns(RewritePatternSet &patterns, Scaling scaling) {
  MLIRContext *c = patterns.getContext();
  auto exp = [](FloatMath &f, Value x) { return f.exp(x); };
  auto expm1 = [](FloatMath &f, Value x) { return f.expm1(x); };
  auto log = [](FloatMath &f, Value x) { return f.log(x); };
  auto log1p = [](FloatMath &f, Value x) { return f.log1p(x); };
  patterns.add<ExpandUnary<math::ExpOp>>(c, exp, scaling);
  patterns.add<ExpandUnary<math::Exp2Op>>(c, exp2, scaling);
  patterns.add<ExpandUnary<math::ExpM1Op>>(c, expm1, scaling);
  patterns.add<ExpandUnary<math::LogOp>>(c, log, scaling);
  patterns.add<ExpandUnary<math::Log1pOp>>(c, log1p, scaling);
  patterns.add<ExpandUnary<math::Log2Op>>(c, log2, scaling);
  patterns.add<ExpandUnary<math::Log10Op>>(c, log10, scaling);
  patterns.add<ExpandUnary<math::TanhOp>>(c, tanh, scaling);
  patterns.add<ExpandUnary<math::ErfOp>>(c, erf, scaling);
  patterns.add<ExpandUnary<math::SinhOp>>(c, sinh, scaling);
  patterns.add<ExpandUnary<math::CoshOp>>(c, cosh, scaling);
  patterns.add<ExpandUnary<math::AsinhOp>>(c, asinh, scaling);
  patterns.add<ExpandUnary<math::AcoshOp>>(c, acosh, scaling);
  patterns.add<ExpandUnary<math::AtanhOp>>(c, atanh, scaling);
}

} // namespace heddle::cpu
