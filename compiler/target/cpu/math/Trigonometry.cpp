// Trigonometry: sin, cos, tan and their inverses on f32. Arguments are reduced in f64, which is
// exact enough below 10^6; a vector with a larger lane goes to libm, lane by lane.

#include "compiler/target/cpu/Lower.h"
#include "compiler/target/cpu/math/FloatMath.h"

using namespace mlir;

namespace heddle::cpu {
namespace {

using C = FloatMath::Compare;
constexpr double pi = 3.14159265358979324;
constexpr double reductionLimit = 1e6;

struct Quadrant {
  Value sin, cos; // of the remainder, |r| <= pi / 4
  Value number;   // i32: x = number * pi / 2 + r
};

Quadrant reduce(FloatMath &f, Value x) {
  FloatMath d = f.as(f.b.getF64Type());
  Value wide = f.make<arith::ExtFOp>(d.type, x);
  Value magic = d.constant(6755399441055744.0); // 1.5 * 2^52: the sum has no room for a fraction
  Value sum = d.fma(wide, d.constant(2 / pi), magic);
  Value n = d.sub(sum, magic);
  // pi / 2 in two parts; the product with the first one is exact.
  Value rest = d.sub(wide, d.mul(n, d.constant(1.57079632673412561417)));
  rest = d.fma(n, d.constant(-6.07710050650619224932e-11), rest);
  Value r = f.make<arith::TruncFOp>(f.type, rest);
  Value number = f.make<arith::TruncIOp>(f.bitsType(), d.toBits(sum));
  Value z = f.mul(r, r);
  Value p = f.horner(z, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1});
  Value sin = f.withSignOf(f.fma(f.mul(p, z), r, r), r);
  Value q = f.horner(z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2});
  Value cos = f.add(f.fma(z, f.constant(-0.5), f.mul(f.mul(q, z), z)), f.constant(1));
  return {sin, cos, number};
}

Value isOdd(FloatMath &f, Value number) {
  return f.make<arith::CmpIOp>(arith::CmpIPredicate::ne, f.make<arith::AndIOp>(number, f.bits(1)),
                               f.bits(0));
}

/// Negated where bit 1 of `number` is set.
Value signByQuadrant(FloatMath &f, Value y, Value number) {
  Value sign = f.make<arith::ShLIOp>(f.make<arith::AndIOp>(number, f.bits(2)), f.bits(30));
  return f.fromBits(f.make<arith::XOrIOp>(f.toBits(y), sign));
}

Value sinNear(FloatMath &f, Value x) {
  Quadrant q = reduce(f, x);
  return signByQuadrant(f, f.select(isOdd(f, q.number), q.cos, q.sin), q.number);
}

Value cosNear(FloatMath &f, Value x) {
  Quadrant q = reduce(f, x);
  Value next = f.make<arith::AddIOp>(q.number, f.bits(1));
  return signByQuadrant(f, f.select(isOdd(f, q.number), q.sin, q.cos), next);
}

Value tanNear(FloatMath &f, Value x) {
  Quadrant q = reduce(f, x);
  Value odd = isOdd(f, q.number);
  return f.div(f.select(odd, f.neg(q.cos), q.sin), f.select(odd, q.sin, q.cos));
}

/// libm has the scalar f64 form: it is not rewritten.
template <typename Op> Value oneLane(OpBuilder &b, Location loc, Value x) {
  Value wide = b.create<arith::ExtFOp>(loc, b.getF64Type(), x);
  return b.create<arith::TruncFOp>(loc, x.getType(), b.create<Op>(loc, wide).getResult());
}

template <typename Op> Value laneByLane(OpBuilder &b, Location loc, Value x) {
  auto type = dyn_cast<VectorType>(x.getType());
  if (!type)
    return oneLane<Op>(b, loc, x);
  auto flat = VectorType::get(type.getNumElements(), type.getElementType());
  x = b.createOrFold<vector::ShapeCastOp>(loc, flat, x);
  auto index = [&](int64_t i) { return b.create<arith::ConstantIndexOp>(loc, i); };
  auto loop =
      b.create<scf::ForOp>(loc, index(0), index(flat.getNumElements()), index(1), x,
                           [&](OpBuilder &b, Location loc, Value i, ValueRange carried) {
                             Value lane = b.create<vector::ExtractElementOp>(loc, carried[0], i);
                             lane = oneLane<Op>(b, loc, lane);
                             Value next =
                                 b.create<vector::InsertElementOp>(loc, lane, carried[0], i);
                             b.create<scf::YieldOp>(loc, next);
                           });
  return b.createOrFold<vector::ShapeCastOp>(loc, type, loop.getResult(0));
}

template <typename Op, Value (*near)(FloatMath &, Value)> Value periodic(FloatMath &f, Value x) {
  Value far = f.is(C::OGT, f.abs(x), f.constant(reductionLimit));
  if (auto type = dyn_cast<VectorType>(far.getType())) {
    auto flat = VectorType::get(type.getNumElements(), type.getElementType());
    far = f.b.createOrFold<vector::ShapeCastOp>(f.loc, flat, far);
    far = f.make<vector::ReductionOp>(vector::CombiningKind::OR, far);
  }
  auto choice = f.make<scf::IfOp>(
      far,
      [&](OpBuilder &b, Location loc) { b.create<scf::YieldOp>(loc, laneByLane<Op>(b, loc, x)); },
      [&](OpBuilder &b, Location loc) {
        FloatMath inner(b, loc, x.getType());
        b.create<scf::YieldOp>(loc, near(inner, x));
      });
  return choice.getResult(0);
}

/// atan for x >= 0.
Value atanPositive(FloatMath &f, Value x) {
  Value large = f.is(C::OGT, x, f.constant(2.414213562373095));
  Value middle = f.is(C::OGT, x, f.constant(0.4142135623730950));
  Value one = f.constant(1), zero = f.constant(0);
  // One division: -1 / x, (x - 1) / (x + 1) or x / 1.
  Value numerator = f.select(large, f.constant(-1), f.select(middle, f.sub(x, one), x));
  Value denominator = f.select(large, x, f.select(middle, f.add(x, one), one));
  Value base = f.select(large, f.constant(pi / 2), f.select(middle, f.constant(pi / 4), zero));
  Value t = f.div(numerator, denominator), z = f.mul(t, t);
  Value p = f.horner(z, {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1});
  return f.add(base, f.fma(f.mul(p, z), t, t));
}

Value atan(FloatMath &f, Value x) { return f.withSignOf(atanPositive(f, f.abs(x)), x); }

/// asin for 0 <= a <= 1/2 as a + a * z * p(z), z = a^2.
Value asinSmall(FloatMath &f, Value a, Value z) {
  Value p = f.horner(
      z, {4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1});
  return f.fma(f.mul(p, z), a, a);
}

struct HalfAngle {
  Value large, y; // |x| > 1/2; asin(|x|), or asin of sqrt((1 - |x|) / 2)
};
HalfAngle halfAngle(FloatMath &f, Value x) {
  Value a = f.abs(x), large = f.is(C::OGT, a, f.constant(0.5));
  Value half = f.fma(a, f.constant(-0.5), f.constant(0.5));
  Value z = f.select(large, half, f.mul(a, a));
  return {large, asinSmall(f, f.select(large, f.sqrt(half), a), z)};
}

Value asin(FloatMath &f, Value x) {
  auto [large, y] = halfAngle(f, x);
  Value other = f.fma(y, f.constant(-2), f.constant(pi / 2));
  return f.withSignOf(f.select(large, other, y), x);
}

Value acos(FloatMath &f, Value x) {
  auto [large, y] = halfAngle(f, x);
  Value negative = f.is(C::OLT, x, f.constant(0));
  Value twice = f.add(y, y);
  Value far = f.select(negative, f.sub(f.constant(pi), twice), twice);
  return f.select(large, far, f.sub(f.constant(pi / 2), f.withSignOf(y, x)));
}

Value atan2(FloatMath &f, Value y, Value x) {
  Value ay = f.abs(y), ax = f.abs(x), steep = f.is(C::OGT, ay, ax);
  Value low = f.select(steep, ax, ay), high = f.select(steep, ay, ax);
  Value ratio = f.div(low, high);
  ratio = f.select(f.is(C::OEQ, high, f.constant(0)), f.constant(0), ratio);
  ratio = f.select(f.is(C::OEQ, low, high),
                   f.select(f.is(C::OEQ, high, f.constant(0)), ratio, f.constant(1)), ratio);
  Value angle = atanPositive(f, ratio);
  angle = f.select(steep, f.sub(f.constant(pi / 2), angle), angle);
  Value negative = f.make<arith::CmpIOp>(arith::CmpIPredicate::slt, f.toBits(x), f.bits(0));
  angle = f.select(negative, f.sub(f.constant(pi), angle), angle);
  Value unordered = f.is(C::UNO, x, y);
  return f.select(unordered, f.add(x, y), f.withSignOf(angle, y));
}

struct ExpandAtan2 : OpRewritePattern<math::Atan2Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Atan2Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    FloatMath f(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, atan2(f, op.getLhs(), op.getRhs()));
    return success();
  }
};

} // namespace

void populateTrigonometryPatterns(RewritePatternSet &patterns) {
  MLIRContext *c = patterns.getContext();
  patterns.add<ExpandUnary<math::SinOp>>(c, periodic<math::SinOp, sinNear>);
  patterns.add<ExpandUnary<math::CosOp>>(c, periodic<math::CosOp, cosNear>);
  patterns.add<ExpandUnary<math::TanOp>>(c, periodic<math::TanOp, tanNear>);
  patterns.add<ExpandUnary<math::AtanOp>>(c, atan);
  patterns.add<ExpandUnary<math::AsinOp>>(c, asin);
  patterns.add<ExpandUnary<math::AcosOp>>(c, acos);
  patterns.add<ExpandAtan2>(c);
}

} // namespace heddle::cpu
