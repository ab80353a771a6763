// NarrowFloats: f16, bf16 and f8 types. Arithmetic on them is done in f32; conversions without an
// instruction are done on the bits, rounding to nearest even, without touching f32 denormals.

#include "compiler/target/floats/NarrowFloats.h"

#include "compiler/program/Dialect.h"

#include "compiler/target/floats/FloatBuilder.h"

using namespace mlir;

namespace heddle::target {
namespace {

using C = FloatBuilder::Compare;

bool isNarrow(Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && element.getWidth() <= 16;
}

enum class Specials { InfinityAndNan, AllOnesIsNan, NegativeZeroIsNan };
struct Format {
  int exponentBits, mantissaBits, bias;
  Specials specials;

  int width() const { return 1 + exponentBits + mantissaBits; }
  int64_t magnitude() const { return (int64_t(1) << (width() - 1)) - 1; }
  int64_t infinity() const { return magnitude() >> mantissaBits << mantissaBits; }
  int64_t largest() const { // code of the largest finite number
    switch (specials) {
    case Specials::InfinityAndNan:
      return infinity() - 1;
    case Specials::AllOnesIsNan:
      return magnitude() - 1;
    case Specials::NegativeZeroIsNan:
      return magnitude();
    }
    llvm_unreachable("all cases return");
  }
};

Format formatOf(Type element) {
  if (element.isF16())
    return {5, 10, 15, Specials::InfinityAndNan};
  if (element.isFloat8E5M2())
    return {5, 2, 15, Specials::InfinityAndNan};
  if (element.isFloat8E4M3FN())
    return {4, 3, 7, Specials::AllOnesIsNan};
  if (element.isFloat8E4M3FNUZ())
    return {4, 3, 8, Specials::NegativeZeroIsNan};
  return {5, 2, 16, Specials::NegativeZeroIsNan}; // f8E5M2FNUZ
}

/// Integer arithmetic as wide as an f32, beside FloatBuilder of f32.
struct Bits {
  FloatBuilder &f;
  Value shl(Value x, int64_t n) { return f.make<arith::ShLIOp>(x, f.bits(n)); }
  Value shr(Value x, int64_t n) { return f.make<arith::ShRUIOp>(x, f.bits(n)); }
  Value band(Value x, int64_t mask) { return f.make<arith::AndIOp>(x, f.bits(mask)); }
  Value bor(Value x, Value y) { return f.make<arith::OrIOp>(x, y); }
  Value add(Value x, int64_t n) { return f.make<arith::AddIOp>(x, f.bits(n)); }
  Value is(arith::CmpIPredicate predicate, Value x, int64_t y) {
    return f.make<arith::CmpIOp>(predicate, x, f.bits(y));
  }
};

Value powerOfTwo(FloatBuilder &f, int exponent) { return f.constant(std::ldexp(1.0, exponent)); }

/// `code`: zero-extended bits of the narrow number.
Value decode(FloatBuilder &f, Value code, const Format &format) {
  Bits bits{f};
  int shift = 23 - format.mantissaBits;
  Value magnitude = bits.band(code, format.magnitude());
  Value sign = bits.shl(bits.shr(code, format.width() - 1), 31);
  Value normal = bits.add(bits.shl(magnitude, shift), int64_t(127 - format.bias) << 23);
  Value small =
      f.toBits(f.mul(f.fromInt(magnitude), powerOfTwo(f, 1 - format.bias - format.mantissaBits)));
  Value isSmall = bits.is(arith::CmpIPredicate::ult, magnitude, int64_t(1) << format.mantissaBits);
  Value result = f.select(isSmall, small, normal);
  Value special, value;
  if (format.specials == Specials::InfinityAndNan) {
    special = bits.is(arith::CmpIPredicate::uge, magnitude, format.infinity());
    value = bits.bor(normal, f.bits(0x7f800000));
  } else {
    int64_t nan =
        format.specials == Specials::AllOnesIsNan ? format.magnitude() : format.magnitude() + 1;
    Value compared = format.specials == Specials::AllOnesIsNan ? magnitude : code;
    special = bits.is(arith::CmpIPredicate::eq, compared, nan);
    value = f.bits(0x7fc00000);
  }
  return f.fromBits(bits.bor(f.select(special, value, result), sign));
}

/// The narrow number's bits in an i32.
Value encode(FloatBuilder &f, Value x, const Format &format) {
  Bits bits{f};
  int shift = 23 - format.mantissaBits;
  Value magnitude = f.abs(x), code = f.toBits(magnitude);
  Value even = bits.band(bits.shr(code, shift), 1);
  Value rounded = f.make<arith::AddIOp>(code, even);
  rounded = bits.add(rounded, (int64_t(1) << (shift - 1)) - 1 - (int64_t(127 - format.bias) << 23));
  Value normal = bits.shr(rounded, shift);
  // A sum with `magic` has a last bit that is worth the smallest narrow number.
  Value magic = powerOfTwo(f, 24 - format.bias - format.mantissaBits);
  Value small = f.make<arith::SubIOp>(f.toBits(f.add(magnitude, magic)), f.toBits(magic));
  Value result = f.select(f.is(C::OLT, magnitude, powerOfTwo(f, 1 - format.bias)), small, normal);
  Value tooLarge =
      f.make<arith::AndIOp>(bits.is(arith::CmpIPredicate::sgt, result, format.largest()),
                            f.is(C::OGE, magnitude, powerOfTwo(f, 1 - format.bias)));
  Value isNan = f.is(C::UNO, x, x);
  Value sign = bits.shl(bits.shr(f.toBits(x), 31), format.width() - 1);
  if (format.specials == Specials::NegativeZeroIsNan) {
    sign = f.select(bits.is(arith::CmpIPredicate::eq, result, 0), f.bits(0), sign);
    Value invalid = f.make<arith::OrIOp>(tooLarge, isNan);
    return f.select(invalid, f.bits(format.magnitude() + 1), bits.bor(result, sign));
  }
  bool hasInfinity = format.specials == Specials::InfinityAndNan;
  int64_t nan = hasInfinity ? format.infinity() + (int64_t(1) << (format.mantissaBits - 1))
                            : format.magnitude();
  result = f.select(tooLarge, f.bits(hasInfinity ? format.infinity() : nan), result);
  return bits.bor(f.select(isNan, f.bits(nan), result), sign);
}

Value encodeBF16(FloatBuilder &f, Value x) {
  Bits bits{f};
  Value code = f.toBits(x);
  Value rounded = bits.add(f.make<arith::AddIOp>(code, bits.band(bits.shr(code, 16), 1)), 0x7fff);
  Value nan = bits.bor(code, f.bits(0x400000));
  return bits.shr(f.select(f.is(C::UNO, x, x), nan, rounded), 16);
}

struct Conversions {
  bool f16HasInstructions, roundsFactors;
  bool byBits(Type narrow) const {
    return !(getElementTypeOrSelf(narrow).isF16() && f16HasInstructions);
  }
};

struct ExpandExtension : OpRewritePattern<arith::ExtFOp> {
  ExpandExtension(MLIRContext *context, Conversions how)
      : OpRewritePattern(context, /*benefit=*/2), how(how) {}
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!isNarrow(x.getType()))
      return failure();
    FloatBuilder narrow(rewriter, op.getLoc(), x.getType());
    FloatBuilder f = narrow.as(rewriter.getF32Type());
    if (!getElementTypeOrSelf(op.getType()).isF32()) {
      Value middle = rewriter.create<arith::ExtFOp>(op.getLoc(), f.type, x);
      if (isNarrow(op.getType()))
        rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), middle);
      else
        rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), middle);
      return success();
    }
    if (!how.byBits(x.getType()))
      return failure();
    Value code = rewriter.create<arith::ExtUIOp>(op.getLoc(), f.bitsType(), narrow.toBits(x));
    if (narrow.element().isBF16())
      rewriter.replaceOp(op, f.fromBits(Bits{f}.shl(code, 16)));
    else
      rewriter.replaceOp(op, decode(f, code, formatOf(narrow.element())));
    return success();
  }
  Conversions how;
};

struct ExpandTruncation : OpRewritePattern<arith::TruncFOp> {
  ExpandTruncation(MLIRContext *context, Conversions how)
      : OpRewritePattern(context, /*benefit=*/2), how(how) {}
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!isNarrow(op.getType()))
      return failure();
    FloatBuilder narrow(rewriter, op.getLoc(), op.getType());
    FloatBuilder f = narrow.as(rewriter.getF32Type());
    if (!getElementTypeOrSelf(x.getType()).isF32()) {
      Value middle = isNarrow(x.getType())
                         ? rewriter.create<arith::ExtFOp>(op.getLoc(), f.type, x).getResult()
                         : rewriter.create<arith::TruncFOp>(op.getLoc(), f.type, x).getResult();
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), middle);
      return success();
    }
    if (!how.byBits(op.getType()) || (how.roundsFactors && op->hasAttr(program::kFactor)))
      return failure();
    Value code =
        narrow.element().isBF16() ? encodeBF16(f, x) : encode(f, x, formatOf(narrow.element()));
    code = rewriter.create<arith::TruncIOp>(op.getLoc(), narrow.bitsType(), code);
    rewriter.replaceOp(op, narrow.fromBits(code));
    return success();
  }
  Conversions how;
};

/// An operation on narrow floats becomes the same operation on f32 between conversions.
struct ComputeInF32 : RewritePattern {
  explicit ComputeInF32(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/2, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    bool isMath = isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
                  op->hasTrait<OpTrait::Elementwise>();
    if (!isMath && !isa<vector::FMAOp, vector::ReductionOp>(op))
      return failure();
    if (isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp>(op))
      return failure();
    if (!llvm::any_of(op->getOperandTypes(), isNarrow) &&
        !llvm::any_of(op->getResultTypes(), isNarrow))
      return failure();
    auto wide = [&](Type type) -> Type {
      return isNarrow(type) ? FloatBuilder(rewriter, op->getLoc(), type).like(rewriter.getF32Type())
                            : type;
    };
    OperationState state(op->getLoc(), op->getName());
    state.attributes = op->getAttrs();
    for (Value operand : op->getOperands())
      state.operands.push_back(
          isNarrow(operand.getType())
              ? rewriter.create<arith::ExtFOp>(op->getLoc(), wide(operand.getType()), operand)
              : operand);
    for (Type type : op->getResultTypes())
      state.types.push_back(wide(type));
    Operation *computed = rewriter.create(state);
    SmallVector<Value> results;
    for (auto [result, type] : llvm::zip(computed->getResults(), op->getResultTypes()))
      results.push_back(result.getType() == type
                            ? Value(result)
                            : rewriter.create<arith::TruncFOp>(op->getLoc(), type, result));
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void populateNarrowFloatPatterns(RewritePatternSet &patterns, bool convertsHalves,
                                 bool roundsFactors) {
  Conversions how{convertsHalves, roundsFactors};
  patterns.add<ExpandExtension, ExpandTruncation>(patterns.getContext(), how);
  patterns.add<ComputeInF32>(patterns.getContext());
}

LogicalResult applyAll(Operation *root, const FrozenRewritePatternSet &patterns) {
  GreedyRewriteConfig config;
  config.maxIterations = GreedyRewriteConfig::kNoLimit;
  config.enableRegionSimplification = GreedySimplifyRegionLevel::Disabled;
  return applyPatternsAndFoldGreedily(root, patterns, config);
}

} // namespace heddle::target
