// Whole: floats that become whole numbers, by the instructions of x86 that do so.

#include "compiler/program/Dialect.h"
#include "compiler/target/cpu/Lower.h"
#include "compiler/target/cpu/math/FloatMath.h"

using namespace mlir;

namespace heddle::cpu {
namespace {

/// Whether the condition holds where x is a number that 32 bits hold, for all those but NaN.
bool isInside(Value condition, Value x) {
  auto compare = condition.getDefiningOp<arith::CmpFOp>();
  if (!compare)
    return false;
  if (compare.getPredicate() == arith::CmpFPredicate::ORD)
    return compare.getLhs() == x && compare.getRhs() == x;
  auto size = compare.getLhs().getDefiningOp<math::AbsFOp>();
  APFloat bound(0.0);
  return compare.getPredicate() == arith::CmpFPredicate::OLT && size && size.getOperand() == x &&
         matchPattern(compare.getRhs(), m_ConstantFloat(&bound)) &&
         bound.convertToDouble() == 0x1p31;
}

/// A conversion that gives the lowest integer where it has none, NaN included, as x86's do. They
/// round as the thread does, to nearest even, or cut off.
struct ConvertOutside : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &rewriter) const override {
    auto vector = dyn_cast<VectorType>(op.getType());
    auto converted = op.getTrueValue().getDefiningOp<arith::FPToSIOp>();
    APInt lowest;
    if (!converted || !vector || vector.getRank() != 1 || !vector.getElementType().isInteger(32) ||
        !getElementTypeOrSelf(converted.getIn().getType()).isF32() ||
        !matchPattern(op.getFalseValue(), m_ConstantInt(&lowest)) || !lowest.isMinSignedValue() ||
        !isInside(op.getCondition(), converted.getIn()))
      return failure();
    Value x = converted.getIn();
    auto whole = x.getDefiningOp<math::RoundEvenOp>();
    if (whole)
      x = whole.getOperand();
    std::string name;
    SmallVector<Value> operands = {x};
    auto integer = [&](unsigned width, int64_t value) -> Value {
      return rewriter.create<arith::ConstantOp>(
          op.getLoc(), rewriter.getIntegerAttr(rewriter.getIntegerType(width), value));
    };
    switch (vector.getDimSize(0)) {
    case 4:
      name = whole ? "llvm.x86.sse2.cvtps2dq" : "llvm.x86.sse2.cvttps2dq";
      break;
    case 8:
      name = whole ? "llvm.x86.avx.cvt.ps2dq.256" : "llvm.x86.avx.cvtt.ps2dq.256";
      break;
    case 16:
      name = whole ? "llvm.x86.avx512.mask.cvtps2dq.512" : "llvm.x86.avx512.mask.cvttps2dq.512";
      operands.append({op.getFalseValue(), integer(16, -1), integer(32, 4)});
      break;
    default:
      return failure();
    }
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(op, op.getType(),
                                                       rewriter.getStringAttr(name), operands);
    return success();
  }
};

/// x / s in four multiplications and additions, for steps s that are neither tiny nor huge, where
/// they are fused. With 1 / s = high + low, fma(x, high, x low) is less than a unit in the last place
/// away, so that its remainder is exact and one step rounds as a division does (Markstein,
/// "Computation of elementary functions on the IBM RISC System/6000 processor", theorem 7).
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

void populateConversionPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertOutside>(patterns.getContext());
}

void populateStepPatterns(RewritePatternSet &patterns, bool fma) {
  patterns.add<DivideInSteps>(patterns.getContext(), fma);
}

} // namespace heddle::cpu
