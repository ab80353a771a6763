// Remainders: remf (C's fmod) by a division where the quotient is an exact whole number, and by
// libm where some lane's is not.

#include "compiler/target/cpu/Lower.h"
#include "compiler/target/cpu/math/FloatMath.h"

using namespace mlir;

namespace heddle::cpu {
namespace {

using C = FloatMath::Compare;
constexpr StringLiteral kByLibm = "heddle.by_libm";

/// x - trunc(x / y) y, exact where the quotient is below 2^24 (f64: 2^53). A whole number is never
/// rounded down to the one before, so the quotient is right or, from below, one too large; both
/// remainders need no more bits than y has.
Value byDivision(FloatMath &f, Value x, Value y, Value quotient) {
  Value q = f.make<math::TruncOp>(quotient);
  Value r = f.fma(f.neg(q), y, x);
  Value wrongSide = f.is(C::OLT, f.mul(f.withSignOf(f.constant(1), x), r), f.constant(0));
  r = f.select(wrongSide, f.add(r, f.withSignOf(y, x)), r);
  // 0 times an infinite y would be NaN.
  return f.withSignOf(f.select(f.is(C::OEQ, q, f.constant(0)), x, r), x);
}

struct ExpandRemainder : OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::RemFOp op, PatternRewriter &rewriter) const override {
    auto vector = dyn_cast<VectorType>(op.getType());
    Type element = getElementTypeOrSelf(op.getType());
    if ((!element.isF32() && !element.isF64()) || (vector && vector.getRank() != 1) ||
        op->hasAttr(kByLibm))
      return failure();
    Location loc = op.getLoc();
    FloatMath f(rewriter, loc, op.getType());
    Value quotient = f.div(op.getLhs(), op.getRhs());
    double exactBelow = element.isF32() ? 0x1p24 : 0x1p53;
    Value isInexact = f.is(C::UGE, f.abs(quotient), f.constant(exactBelow)); // or NaN
    if (vector)
      isInexact = rewriter.create<vector::ReductionOp>(loc, vector::CombiningKind::OR, isInexact);
    auto choice = rewriter.create<scf::IfOp>(loc, op.getType(), isInexact, /*withElse=*/true);
    rewriter.setInsertionPointToStart(choice.thenBlock());
    auto called = rewriter.create<arith::RemFOp>(loc, op.getLhs(), op.getRhs());
    called->setAttr(kByLibm, rewriter.getUnitAttr());
    rewriter.create<scf::YieldOp>(loc, called.getResult());
    rewriter.setInsertionPointToStart(choice.elseBlock());
    rewriter.create<scf::YieldOp>(loc, byDivision(f, op.getLhs(), op.getRhs(), quotient));
    rewriter.replaceOp(op, choice);
    return success();
  }
};

} // namespace

void populateRemainderPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandRemainder>(patterns.getContext());
}

} // namespace heddle::cpu
