// Math: expansions that keep NaN and infinities right and stay within a few units in the last place.

#include "compiler/target/cpu/Math.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"

using namespace mlir;

namespace heddle::cpu {

namespace {

bool isF32(Type type) { return getElementTypeOrSelf(type).isF32(); }

/// Arithmetic on values of one type, scalar or vector.
struct F32 {
  PatternRewriter &rewriter;
  Location loc;
  Type type;

  Value constant(double value) {
    Attribute number = rewriter.getF32FloatAttr(value);
    if (auto vector = dyn_cast<VectorType>(type))
      number = DenseElementsAttr::get(vector, number);
    return rewriter.create<arith::ConstantOp>(loc, type, cast<TypedAttr>(number));
  }
  Value bits(int32_t value) {
    Attribute number = rewriter.getI32IntegerAttr(value);
    if (auto vector = dyn_cast<VectorType>(type))
      number = DenseElementsAttr::get(cast<VectorType>(integers()), number);
    return rewriter.create<arith::ConstantOp>(loc, integers(), cast<TypedAttr>(number));
  }
  Type integers() {
    Type i32 = rewriter.getI32Type();
    if (auto vector = dyn_cast<VectorType>(type))
      return VectorType::get(vector.getShape(), i32);
    return i32;
  }
  template <typename Op> Value make(Value x, Value y) { return rewriter.create<Op>(loc, x, y); }
  Value fma(Value x, Value y, Value z) { return rewriter.create<math::FmaOp>(loc, x, y, z); }
  Value horner(Value x, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.front());
    for (double c : coefficients.drop_front())
      sum = fma(sum, x, constant(c));
    return sum;
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return rewriter.create<arith::CmpFOp>(loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return rewriter.create<arith::SelectOp>(loc, condition, x, y);
  }

  /// e^x = 2^n * e^r with n = round(x / ln 2); exact 0 below -87.3, infinity above 88.7. Multiplying by 2^n in two halves keeps
  /// the largest results finite. NaN is kept by the clamps, which give back their first operand.
  Value exp(Value x) {
    Value low = constant(-87.33654), high = constant(88.72283);
    Value isLow = compare(arith::CmpFPredicate::OLT, x, low);
    Value isHigh = compare(arith::CmpFPredicate::OGT, x, high);
    Value isNan = compare(arith::CmpFPredicate::UNO, x, x);
    Value clamped = make<arith::MinNumFOp>(make<arith::MaxNumFOp>(x, low), high);
    // 12583039 = 1.5 * 2^23 + 127: its last bits hold n + 127 after the sum.
    Value magic = constant(12582912.0);
    Value t = fma(clamped, constant(1.44269504088896341), magic);
    Value n = make<arith::SubFOp>(t, magic);
    Value r = fma(n, constant(-0.693359375), clamped);
    r = fma(n, constant(2.12194440e-4), r);
    Value p = horner(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                         1.6666665459e-1, 5.0000001201e-1});
    Value rr = make<arith::MulFOp>(r, r);
    p = make<arith::AddFOp>(fma(p, rr, r), constant(1.0));
    // 2^n as 2^(n/2) * 2^(n - n/2).
    Value k = rewriter.create<arith::FPToSIOp>(loc, integers(), n);
    Value half = make<arith::ShRSIOp>(k, bits(1));
    Value other = make<arith::SubIOp>(k, half);
    auto power = [&](Value exponent) -> Value {
      Value biased = make<arith::ShLIOp>(make<arith::AddIOp>(exponent, bits(127)), bits(23));
      return rewriter.create<arith::BitcastOp>(loc, type, biased);
    };
    Value result = make<arith::MulFOp>(make<arith::MulFOp>(p, power(half)), power(other));
    result = select(isLow, constant(0.0), result);
    result = select(isHigh, constant(std::numeric_limits<double>::infinity()), result);
    return select(isNan, x, result);
  }

  /// Rational approximation of erf on [-4, 4] (Eigen), +-1 beyond.
  Value erf(Value x) {
    Value a = make<arith::MinNumFOp>(make<arith::MaxNumFOp>(x, constant(-4)), constant(4));
    Value a2 = make<arith::MulFOp>(a, a);
    Value p = horner(a2, {-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06,
                          -5.69250639462346e-05, -7.34990630326855e-04, -2.95459980854025e-03,
                          -1.60960333262415e-02});
    Value q = horner(a2, {-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
                          -7.37332916720468e-03, -1.42647390514189e-02});
    Value result = make<arith::DivFOp>(make<arith::MulFOp>(a, p), q);
    return select(compare(arith::CmpFPredicate::UNO, x, x), x, result);
  }
};

struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!isF32(op.getType()))
      return failure();
    F32 f{rewriter, op.getLoc(), op.getType()};
    rewriter.replaceOp(op, f.exp(op.getOperand()));
    return success();
  }
};

struct ExpandErf : OpRewritePattern<math::ErfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ErfOp op, PatternRewriter &rewriter) const override {
    if (!isF32(op.getType()))
      return failure();
    F32 f{rewriter, op.getLoc(), op.getType()};
    rewriter.replaceOp(op, f.erf(op.getOperand()));
    return success();
  }
};

struct MathPass : PassWrapper<MathPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MathPass)
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    RewritePatternSet own(&getContext());
    own.add<ExpandExp, ExpandErf>(&getContext());
    (void)applyPatternsAndFoldGreedily(getOperation(), std::move(own));
    RewritePatternSet upstream(&getContext());
    populateMathPolynomialApproximationPatterns(upstream);
    (void)applyPatternsAndFoldGreedily(getOperation(), std::move(upstream));
  }
};

} // namespace

std::unique_ptr<Pass> createMathPass() { return std::make_unique<MathPass>(); }

} // namespace heddle::cpu
