// FloatMath: functions of one float type, scalar or vector, as polynomials.
#ifndef HEDDLE_TARGET_CPU_MATH_FLOATMATH_H
#define HEDDLE_TARGET_CPU_MATH_FLOATMATH_H

#include "compiler/target/floats/FloatBuilder.h"

namespace heddle::cpu {

/// Requirements of exponentials on the machine and the run.
struct Scaling {
  bool avx512 = false;          // there is an instruction that scales by powers of two
  bool keepsSubnormals = false; // else results below the normal numbers may be 0
};

class FloatMath : public target::FloatBuilder {
public:
  FloatMath(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, Scaling scaling = {})
      : FloatBuilder(b, loc, type), scaling(scaling) {}
  /// The shape with elements of another type.
  FloatMath as(mlir::Type element) const { return FloatMath(b, loc, like(element), scaling); }

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

  Scaling scaling;
};

/// Rewrites a math op on f32 with one operand by a function over FloatMath.
template <typename Op> struct ExpandUnary : mlir::OpRewritePattern<Op> {
  using Function = mlir::Value (*)(FloatMath &, mlir::Value);
  ExpandUnary(mlir::MLIRContext *context, Function function, Scaling scaling = {})
      : mlir::OpRewritePattern<Op>(context), function(function), scaling(scaling) {}
  mlir::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const override {
    if (!mlir::getElementTypeOrSelf(op.getType()).isF32())
      return mlir::failure();
    FloatMath f(rewriter, op.getLoc(), op.getType(), scaling);
    rewriter.replaceOp(op, function(f, op->getOperand(0)));
    return mlir::success();
  }
  Function function;
  Scaling scaling;
};

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_MATH_FLOATMATH_H
