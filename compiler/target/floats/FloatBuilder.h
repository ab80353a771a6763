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

  template <typename Op, typename... Arguments> Op make(Arguments &&...arguments) {
    return b.create<Op>(loc, std::forward<Arguments>(arguments)...);
  }
  Value constant(double value) { return splat(type, b.getFloatAttr(element(), value)); }
  Value bits(int64_t value) { return splat(bitsType(), b.getIntegerAttr(bitsElement(), value)); }
  Value add(Value x, Value y) { return make<mlir::arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return make<mlir::arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return make<mlir::arith::MulFOp>(x, y); }
  Value div(Value x, Value y) { return make<mlir::arith::DivFOp>(x, y); }
  Value neg(Value x) { return make<mlir::arith::NegFOp>(x); }
  Value abs(Value x) { return make<mlir::math::AbsFOp>(x); }
  Value sqrt(Value x) { return make<mlir::math::SqrtOp>(x); }
  Value withSignOf(Value x, Value y) { return make<mlir::math::CopySignOp>(x, y); }
  Value fma(Value x, Value y, Value z) { return make<mlir::math::FmaOp>(x, y, z); }
  Value is(Compare predicate, Value x, Value y) {
    return make<mlir::arith::CmpFOp>(predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return make<mlir::arith::SelectOp>(condition, x, y);
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
  Value toBits(Value x) { return make<mlir::arith::BitcastOp>(bitsType(), x); }
  Value fromBits(Value x) { return make<mlir::arith::BitcastOp>(type, x); }
  Value toInt(Value x) { return make<mlir::arith::FPToSIOp>(bitsType(), x); }
  Value fromInt(Value x) { return make<mlir::arith::SIToFPOp>(type, x); }
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
      return make<mlir::arith::ConstantOp>(
          mlir::DenseElementsAttr::get(vector, llvm::ArrayRef<mlir::Attribute>(value)));
    return make<mlir::arith::ConstantOp>(value);
  }
};

} // namespace heddle::target

#endif // HEDDLE_TARGET_FLOATS_FLOATBUILDER_H
