// FloatMath: arithmetic on values of one float type, scalar or vector, for expansions of math ops.
#ifndef HEDDLE_TARGET_CPU_MATH_FLOATMATH_H
#define HEDDLE_TARGET_CPU_MATH_FLOATMATH_H

#include "compiler/Prelude.h"

namespace heddle::cpu {

class FloatMath {
public:
  using Value = mlir::Value;
  using Compare = mlir::arith::CmpFPredicate;

  /// `avx512`: there is an instruction that scales by powers of two.
  FloatMath(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, bool avx512 = false)
      : b(b), loc(loc), type(type), avx512(avx512) {}
  /// The same shape with elements of another type.
  FloatMath as(mlir::Type element) const { return FloatMath(b, loc, like(element), avx512); }

  Value constant(double value) { return splat(type, b.getFloatAttr(element(), value)); }
  Value bits(int64_t value) { return splat(bitsType(), b.getIntegerAttr(bitsElement(), value)); }
  Value add(Value x, Value y) { return b.create<mlir::arith::AddFOp>(loc, x, y); }
  Value sub(Value x, Value y) { return b.create<mlir::arith::SubFOp>(loc, x, y); }
  Value mul(Value x, Value y) { return b.create<mlir::arith::MulFOp>(loc, x, y); }
  Value div(Value x, Value y) { return b.create<mlir::arith::DivFOp>(loc, x, y); }
  Value neg(Value x) { return b.create<mlir::arith::NegFOp>(loc, x); }
  Value abs(Value x) { return b.create<mlir::math::AbsFOp>(loc, x); }
  Value sqrt(Value x) { return b.create<mlir::math::SqrtOp>(loc, x); }
  Value withSignOf(Value x, Value y) { return b.create<mlir::math::CopySignOp>(loc, x, y); }
  Value fma(Value x, Value y, Value z) { return b.create<mlir::math::FmaOp>(loc, x, y, z); }
  Value is(Compare predicate, Value x, Value y) {
    return b.create<mlir::arith::CmpFOp>(loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return b.create<mlir::arith::SelectOp>(loc, condition, x, y);
  }
  /// As one x86 instruction each; a NaN in x stays.
  Value atMost(Value x, double limit) {
    Value c = constant(limit);
    return select(is(Compare::OLT, c, x), c, x);
  }
  Value atLeast(Value x, double limit) {
    Value c = constant(limit);
    return select(is(Compare::OGT, c, x), c, x);
  }
  Value toBits(Value x) { return b.create<mlir::arith::BitcastOp>(loc, bitsType(), x); }
  Value fromBits(Value x) { return b.create<mlir::arith::BitcastOp>(loc, type, x); }
  Value toInt(Value x) { return b.create<mlir::arith::FPToSIOp>(loc, bitsType(), x); }
  Value fromInt(Value x) { return b.create<mlir::arith::SIToFPOp>(loc, type, x); }
  template <typename Op> Value make(Value x, Value y) { return b.create<Op>(loc, x, y); }
  /// First coefficient: of the highest power.
  Value horner(Value x, llvm::ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.front());
    for (double c : coefficients.drop_front())
      sum = fma(sum, x, constant(c));
    return sum;
  }

  mlir::Type element() const { return mlir::getElementTypeOrSelf(type); }
  mlir::Type bitsElement() const { return b.getIntegerType(element().getIntOrFloatBitWidth()); }
  mlir::Type bitsType() const { return like(bitsElement()); }
  mlir::Type like(mlir::Type element) const {
    auto vector = llvm::dyn_cast<mlir::VectorType>(type);
    return vector ? mlir::Type(vector.clone(element)) : element;
  }

  // The functions that others are built on; in Exponentials.cpp.
  Value exp(Value x);
  /// Whether one instruction gives y * 2^n for all whole n, 0 and infinity included; and that.
  bool canScale() const;
  Value scale(Value y, Value n);
  Value expm1(Value x);
  /// x = 2^exponent * (1 + rest) for normal positive x: log(1 + rest) and the exponent.
  std::pair<Value, Value> splitLog(Value x);
  Value log(Value x);
  Value log1p(Value x);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type type;
  bool avx512;

private:
  Value splat(mlir::Type type, mlir::TypedAttr value) {
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(type))
      return b.create<mlir::arith::ConstantOp>(
          loc, mlir::DenseElementsAttr::get(vector, llvm::ArrayRef<mlir::Attribute>(value)));
    return b.create<mlir::arith::ConstantOp>(loc, value);
  }
};

/// Rewrites a math op on f32 with one operand by a function over FloatMath.
template <typename Op> struct ExpandUnary : mlir::OpRewritePattern<Op> {
  using Function = mlir::Value (*)(FloatMath &, mlir::Value);
  ExpandUnary(mlir::MLIRContext *context, Function function, bool avx512 = false)
      : mlir::OpRewritePattern<Op>(context), function(function), avx512(avx512) {}
  mlir::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const override {
    if (!mlir::getElementTypeOrSelf(op.getType()).isF32())
      return mlir::failure();
    FloatMath f(rewriter, op.getLoc(), op.getType(), avx512);
    rewriter.replaceOp(op, function(f, op->getOperand(0)));
    return mlir::success();
  }
  Function function;
  bool avx512;
};

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_MATH_FLOATMATH_H
