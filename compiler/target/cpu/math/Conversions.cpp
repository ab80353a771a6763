// Conversions: floats to integers by the instructions of x86.

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

} // namespace

void populateConversionPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertOutside>(patterns.getContext());
}

} // namespace heddle::cpu
