// Quotients: divisions that need not be divisions, which wide vectors wait for.

#include "compiler/program/Dialect.h"
#include "compiler/target/cpu/Lower.h"
#include "compiler/target/cpu/math/FloatMath.h"

using namespace mlir;

namespace heddle::cpu {
namespace {

/// x / s in four multiplications and additions, for steps s that are neither tiny nor huge, where
/// they are fused. With 1 / s = high + low, fma(x, high, x low) is less than a unit in the last
/// place away, so that its remainder is exact and one step rounds as a division does (Markstein,
/// "Computation of elementary functions on the IBM RISC System/6000 processor").
/// Remainders that are too small to be exact are those of quotients that are 0 when rounded.
struct DivideInSteps : OpRewritePattern<arith::DivFOp> {
  DivideInSteps(MLIRContext *context, bool fma) : OpRewritePattern(context), fma(fma) {}
  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    constexpr double kLeast = 0x1p-60, kMost = 0x1p60;
    if (!op->hasAttr(program::kSteps))
      return failure();
    APFloat step(0.0);
    bool isKnown = getElementTypeOrSelf(op.getType()).isF32() &&
                   matchPattern(op.getRhs(), m_ConstantFloat(&step));
    double s = isKnown ? step.convertToDouble() : 0;
    if (!fma || !(s >= kLeast && s <= kMost)) {
      rewriter.modifyOpInPlace(op, [&] { op->removeAttr(program::kSteps); });
      return success();
    }
    FloatMath f(rewriter, op.getLoc(), op.getType());
    auto high = static_cast<float>(1 / s);
    // 1 - s high is exact in f64: both have 24 bits.
    auto low = static_cast<float>((1 - s * static_cast<double>(high)) / s);
    Value x = op.getLhs();
    Value about = f.fma(x, f.constant(high), f.mul(x, f.constant(low)));
    Value rest = f.fma(about, f.constant(-s), x);
    rewriter.replaceOp(op, f.fma(rest, f.constant(high), about));
    return success();
  }
  bool fma;
};

} // namespace

void populateQuotientPatterns(RewritePatternSet &patterns, bool fma) {
  patterns.add<DivideInSteps>(patterns.getContext(), fma);
}

} // namespace heddle::cpu
