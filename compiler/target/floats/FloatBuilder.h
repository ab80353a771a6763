// FloatBuilder: arithmetic on values of one float type, scalar or vector, for expansions of ops.
#ifndef HEDDLE_TARGET_FLOATS_FLOATBUILDER_H
#define HEDDLE_TARGET_FLOATS_FLOATBUILDER_H

#include "compiler/Prelude.h"

namespace heddle::target {

class FloatBuilder {
public:
  using Value = mlir::Value;
  using Compare = mlir::arith::CmpFPredicate;

  FloatBuilder(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type)
      : b(b), loc(loc), type(type) {}
  /// The shape with elements of another type.
  FloatBuilder as(mlir::Type element) const { return FloatBuilder(b, loc, like(element)); }

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

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type type;

private:
  Value splat(mlir::Type type, mlir::TypedAttr value) {
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(type))
      return b.create<mlir::arith::ConstantOp>(
          loc, mlir::DenseElementsAttr::get(vector, llvm::ArrayRef<mlir::Attribute>(value)));
    return b.create<mlir::arith::ConstantOp>(loc, value);
  }
};

} // namespace heddle::target

#endif // HEDDLE_TARGET_FLOATS_FLOATBUILDER_H
