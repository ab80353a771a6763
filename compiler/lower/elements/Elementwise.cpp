// Elementwise: scalar or vector code of each elementwise op, and of what reductions combine with.

#include "compiler/lower/elements/Definitions.h"

#include "compiler/graph/Constants.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// One op's operands with the questions that every case asks.
struct Words {
  Code &code;
  Operation *op;
  ArrayRef<Value> in;

  Type element() const { return graph::storageOf(op->getOperand(0)); }
  bool isFloat() const { return isa<FloatType>(element()); }
  bool isUnsigned() const {
    return element().isUnsignedInteger() || element().isSignlessInteger(1);
  }
  Value like(Value value, double number) const {
    Value scalar = code.constantOf(getElementTypeOrSelf(value.getType()), number);
    return Code::isVector(value) ? code.spread(scalar) : scalar;
  }
  template <typename Op> Value make(ValueRange operands) const {
    return code.b.create<Op>(code.loc, operands);
  }
  template <typename Op> Value make() const { return make<Op>(in); }
  template <typename FloatOp, typename IntegerOp> Value either() const {
    return isFloat() ? make<FloatOp>() : make<IntegerOp>();
  }
  Value choose(Value condition, Value yes, Value no) const {
    return code.b.create<arith::SelectOp>(code.loc, condition, yes, no);
  }
  Value compare(arith::CmpFPredicate floating, arith::CmpIPredicate isSigned,
                arith::CmpIPredicate isNotSigned) const {
    if (isFloat())
      return code.b.create<arith::CmpFOp>(code.loc, floating, in[0], in[1]);
    return code.b.create<arith::CmpIOp>(code.loc, isUnsigned() ? isNotSigned : isSigned, in[0],
                                        in[1]);
  }
};
} // namespace

/// x as f32, rounded to odd: rounding that again, to 16 bits, gives what rounding x once would.
static Value roundToOdd(const Words &w, Value x) {
  Code &code = w.code;
  auto like = [&](Type type) -> Type {
    if (auto vector = dyn_cast<VectorType>(x.getType()))
      return VectorType::get(vector.getShape(), type);
    return type;
  };
  Value y = code.b.create<arith::TruncFOp>(code.loc, like(code.b.getF32Type()), x);
  Value back = code.b.create<arith::ExtFOp>(code.loc, x.getType(), y);
  Value bits = code.b.create<arith::BitcastOp>(code.loc, like(code.b.getI32Type()), y);
  Value zero = w.like(bits, 0), one = w.like(bits, 1);
  Value isInexact = code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::ONE, back, x);
  Value isEven = code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq,
                                              w.make<arith::AndIOp>({bits, one}), zero);
  Value isAbove = code.b.create<arith::CmpFOp>(
      code.loc, arith::CmpFPredicate::OGT, w.make<math::AbsFOp>({x}), w.make<math::AbsFOp>({back}));
  Value moved =
      w.choose(isAbove, w.make<arith::AddIOp>({bits, one}), w.make<arith::SubIOp>({bits, one}));
  bits = w.choose(w.make<arith::AndIOp>({isInexact, isEven}), moved, bits);
  return code.b.create<arith::BitcastOp>(code.loc, y.getType(), bits);
}

/// Whether the op's operand is a clamp, as quantisation has, whose limits lie within the bound.
static bool isClamped(Operation *op, double bound) {
  auto top = op->getOperand(0).getDefiningOp<graph::MinOp>();
  auto bottom = top ? top.getX().getDefiningOp<graph::MaxOp>() : graph::MaxOp();
  auto most = bottom ? graph::splatOf(top.getY()) : std::nullopt;
  auto least = bottom ? graph::splatOf(bottom.getY()) : std::nullopt;
  return most && least && std::fabs(*most) < bound && std::fabs(*least) < bound;
}

/// A float as a signed integer of `target`, its lowest number where that cannot hold it. LLVM's own
/// conversion is poison there, which the choice leaves behind.
static Value floatToSigned(const Words &w, Value x, Type target) {
  unsigned bits = getElementTypeOrSelf(target).getIntOrFloatBitWidth();
  double bound = std::ldexp(1.0, bits - 1);
  if (getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth() == 8) { // some have no infinity
    Type middle = w.code.b.getF32Type();
    if (auto vector = dyn_cast<VectorType>(x.getType()))
      middle = VectorType::get(vector.getShape(), middle);
    x = w.code.b.create<arith::ExtFOp>(w.code.loc, middle, x);
  }
  // Floats up to -bound may count as outside, -bound among them: it is the lowest number. A clamp
  // leaves NaN alone.
  Value isInside =
      isClamped(w.op, bound)
          ? w.code.b.create<arith::CmpFOp>(w.code.loc, arith::CmpFPredicate::ORD, x, x)
          : w.code.b.create<arith::CmpFOp>(w.code.loc, arith::CmpFPredicate::OLT,
                                           w.make<math::AbsFOp>({x}), w.like(x, bound));
  Value integer = w.code.b.create<arith::FPToSIOp>(w.code.loc, target, x);
  return w.choose(isInside, integer, w.like(integer, -bound));
}

/// Float to ui64: as to i64, and from 2^63 on with the distance to it.
static Value emitFloatToUnsigned64(const Words &w, Type target) {
  Value x = w.in[0], half = w.like(x, 0x1p63);
  Value isHigh = w.code.b.create<arith::CmpFOp>(w.code.loc, arith::CmpFPredicate::OGE, x, half);
  Value low = w.choose(isHigh, w.make<arith::SubFOp>({x, half}), x);
  Value integer = floatToSigned(w, low, target);
  Value moved = w.make<arith::AddIOp>({integer, w.like(integer, -0x1p63)});
  return w.choose(isHigh, moved, integer);
}

/// An f32 between the largest finite numbers of a narrow type; NaN stays.
static Value saturated(const Words &w, Value x, FloatType narrow) {
  double largest = APFloat::getLargest(narrow.getFloatSemantics()).convertToDouble();
  auto clamp = [&](Value value, arith::CmpFPredicate beyond, double limit) {
    Value bound = w.like(value, limit);
    Value isBeyond = w.code.b.create<arith::CmpFOp>(w.code.loc, beyond, value, bound);
    return w.choose(isBeyond, bound, value);
  };
  x = clamp(x, arith::CmpFPredicate::OGT, largest);
  return clamp(x, arith::CmpFPredicate::OLT, -largest);
}

Value roundedFactor(Code &code, Value floats) {
  Type element = code.b.getBF16Type(), type = element;
  if (auto vector = dyn_cast<VectorType>(floats.getType()))
    type = VectorType::get(vector.getShape(), element);
  if (floats.getType() == type)
    return floats;
  auto widened = floats.getDefiningOp<arith::ExtFOp>();
  if (widened && widened.getIn().getType() == type)
    return widened.getIn();
  auto rounded = code.b.create<arith::TruncFOp>(code.loc, type, floats);
  rounded->setAttr(program::kFactor, code.b.getUnitAttr());
  return rounded;
}

static Value emitCast(const Words &w, Type from, Type to) {
  Code &code = w.code;
  Value x = w.in[0];
  Type target = program::computeType(to);
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    target = VectorType::get(vector.getShape(), target);
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  bool fromUnsigned = from.isUnsignedInteger() || from.isSignlessInteger(1);
  unsigned fromBits = from.getIntOrFloatBitWidth(), toBits = to.getIntOrFloatBitWidth();
  auto unary = [&](auto tag) -> Value {
    return code.b.create<std::remove_pointer_t<decltype(tag)>>(code.loc, target, x);
  };
  if (to.isSignlessInteger(1)) {
    if (from.isSignlessInteger(1))
      return x;
    if (fromFloat)
      return code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::UNE, x, w.like(x, 0));
    return code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, x, w.like(x, 0));
  }
  if (fromFloat && toFloat) {
    if (from == to)
      return x;
    if (cast<graph::CastOp>(w.op).getFactor())
      return roundedFactor(code, x);
    if (fromBits == toBits || fromBits == 8 || toBits == 8) { // through f32
      Type middle = code.b.getF32Type();
      if (auto vector = dyn_cast<VectorType>(x.getType()))
        middle = VectorType::get(vector.getShape(), middle);
      if (fromBits < 32)
        x = code.b.create<arith::ExtFOp>(code.loc, middle, x);
      else if (fromBits > 32)
        x = code.b.create<arith::TruncFOp>(code.loc, middle, x);
      if (x.getType() == target)
        return x;
      if (toBits > 32)
        return code.b.create<arith::ExtFOp>(code.loc, target, x);
      if (toBits == 8 && cast<graph::CastOp>(w.op).getSaturate())
        x = saturated(w, x, cast<FloatType>(to));
      return code.b.create<arith::TruncFOp>(code.loc, target, x);
    }
    if (fromBits == 64 && toBits == 16) // no instruction converts directly
      x = roundToOdd(w, x);
    return fromBits < toBits ? unary((arith::ExtFOp *)nullptr) : unary((arith::TruncFOp *)nullptr);
  }
  if (toFloat && from.isSignlessInteger(1) && toBits >= 16) {
    auto number = [&](double value) {
      Value scalar = code.constantOf(getElementTypeOrSelf(target), value);
      return Code::isVector(x) ? code.spread(scalar) : scalar;
    };
    return w.choose(x, number(1), number(0));
  }
  if (toFloat)
    return fromUnsigned ? unary((arith::UIToFPOp *)nullptr) : unary((arith::SIToFPOp *)nullptr);
  if (fromFloat && to.isUnsignedInteger(64))
    return emitFloatToUnsigned64(w, target);
  if (fromFloat) {
    // Integers that are narrower, or unsigned, are cut off from a signed one.
    unsigned wide = toBits < 32 || (toBits == 32 && !to.isUnsignedInteger()) ? 32 : 64;
    Type middle = IntegerType::get(to.getContext(), wide);
    if (auto vector = dyn_cast<VectorType>(x.getType()))
      middle = VectorType::get(vector.getShape(), middle);
    x = floatToSigned(w, x, middle);
    return wide == toBits ? x : Value(code.b.create<arith::TruncIOp>(code.loc, target, x));
  }
  if (fromBits == toBits)
    return x;
  if (fromBits > toBits)
    return unary((arith::TruncIOp *)nullptr);
  return fromUnsigned ? unary((arith::ExtUIOp *)nullptr) : unary((arith::ExtSIOp *)nullptr);
}

/// x / y without the two cases in which the processor traps; y = 0 gives x / 1.
static Value emitIntegerDivision(const Words &w, bool wantRemainder) {
  Value x = w.in[0], y = w.in[1], zero = w.like(y, 0), one = w.like(y, 1);
  auto equals = [&](Value a, Value b) -> Value {
    return w.code.b.create<arith::CmpIOp>(w.code.loc, arith::CmpIPredicate::eq, a, b);
  };
  Value safe = w.choose(equals(y, zero), one, y);
  if (w.isUnsigned())
    return wantRemainder ? w.make<arith::RemUIOp>({x, safe}) : w.make<arith::DivUIOp>({x, safe});
  Value minusOne = w.like(y, -1), isMinusOne = equals(y, minusOne);
  safe = w.choose(isMinusOne, one, safe);
  if (wantRemainder)
    return w.choose(isMinusOne, zero, w.make<arith::RemSIOp>({x, safe}));
  return w.choose(isMinusOne, w.make<arith::SubIOp>({zero, x}), w.make<arith::DivSIOp>({x, safe}));
}

static Value emitMod(const Words &w, bool cRemainder) {
  Value x = w.in[0], y = w.in[1];
  Value zero = w.like(x, 0);
  Value remainder = w.isFloat() ? w.make<arith::RemFOp>() : emitIntegerDivision(w, true);
  if (cRemainder || (!w.isFloat() && w.isUnsigned()))
    return remainder;
  // Python's sign: add y when the remainder and y have different signs.
  Value different, isNot;
  if (w.isFloat()) {
    auto negative = [&](Value v) -> Value {
      return w.code.b.create<arith::CmpFOp>(w.code.loc, arith::CmpFPredicate::OLT, v, zero);
    };
    different = w.make<arith::XOrIOp>({negative(remainder), negative(y)});
    isNot = w.code.b.create<arith::CmpFOp>(w.code.loc, arith::CmpFPredicate::ONE, remainder, zero);
    return w.choose(w.make<arith::AndIOp>({different, isNot}),
                    w.make<arith::AddFOp>({remainder, y}), remainder);
  }
  auto negative = [&](Value v) -> Value {
    return w.code.b.create<arith::CmpIOp>(w.code.loc, arith::CmpIPredicate::slt, v, zero);
  };
  different = w.make<arith::XOrIOp>({negative(remainder), negative(y)});
  isNot = w.code.b.create<arith::CmpIOp>(w.code.loc, arith::CmpIPredicate::ne, remainder, zero);
  return w.choose(w.make<arith::AndIOp>({different, isNot}), w.make<arith::AddIOp>({remainder, y}),
                  remainder);
}

static Value emitShift(const Words &w, bool left) {
  Value width = w.like(w.in[1], w.element().getIntOrFloatBitWidth());
  Value inRange =
      w.code.b.create<arith::CmpIOp>(w.code.loc, arith::CmpIPredicate::ult, w.in[1], width);
  Value shifted = left ? w.make<arith::ShLIOp>() : w.make<arith::ShRUIOp>();
  return w.choose(inRange, shifted, w.like(w.in[0], 0));
}

static Value emitSign(const Words &w) {
  Value x = w.in[0], zero = w.like(x, 0), one = w.like(x, 1);
  if (w.isFloat()) {
    auto is = [&](arith::CmpFPredicate predicate) -> Value {
      return w.code.b.create<arith::CmpFOp>(w.code.loc, predicate, x, zero);
    };
    Value result = w.choose(is(arith::CmpFPredicate::OGT), one, x); // NaN and 0 stay
    return w.choose(is(arith::CmpFPredicate::OLT), w.like(x, -1), result);
  }
  auto is = [&](arith::CmpIPredicate predicate) -> Value {
    return w.code.b.create<arith::CmpIOp>(w.code.loc, predicate, x, zero);
  };
  if (w.isUnsigned())
    return w.choose(is(arith::CmpIPredicate::ne), one, zero);
  return w.choose(is(arith::CmpIPredicate::sgt), one,
                  w.choose(is(arith::CmpIPredicate::slt), w.like(x, -1), zero));
}

/// Power by squaring, in a loop over the bits of the exponent; negative exponents give 0 or +-1.
static Value emitIntegerPow(const Words &w) {
  Code &code = w.code;
  Value x = w.in[0], y = w.in[1], zero = w.like(x, 0), one = w.like(x, 1);
  auto isOdd = [&](Value value) -> Value {
    return code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne,
                                        w.make<arith::AndIOp>({value, one}), zero);
  };
  int64_t bits = w.element().getIntOrFloatBitWidth();
  Value power =
      code.fold(code.number(0), code.number(bits), 1, {one, x, y}, [&](Value, ValueRange in) {
        Value next = w.choose(isOdd(in[2]), w.make<arith::MulIOp>({in[0], in[1]}), in[0]);
        return Values{next, w.make<arith::MulIOp>({in[1], in[1]}),
                      w.make<arith::ShRUIOp>({in[2], one})};
      })[0];
  if (w.isUnsigned())
    return power;
  auto compare = [&](arith::CmpIPredicate predicate, Value a, Value b) -> Value {
    return code.b.create<arith::CmpIOp>(code.loc, predicate, a, b);
  };
  Value minusOne = w.like(x, -1);
  Value inverse = w.choose(compare(arith::CmpIPredicate::eq, x, minusOne),
                           w.choose(isOdd(y), minusOne, one), zero);
  inverse = w.choose(compare(arith::CmpIPredicate::eq, x, one), one, inverse);
  return w.choose(compare(arith::CmpIPredicate::slt, y, zero), inverse, power);
}

static Value emitPredicates(const Words &w) {
  Value x = w.in[0];
  if (isa<graph::IsNanOp>(w.op))
    return w.code.b.create<arith::CmpFOp>(w.code.loc, arith::CmpFPredicate::UNO, x, x);
  auto op = cast<graph::IsInfOp>(w.op);
  double infinity = std::numeric_limits<double>::infinity();
  auto equals = [&](double number) -> Value {
    return w.code.b.create<arith::CmpFOp>(w.code.loc, arith::CmpFPredicate::OEQ, x,
                                          w.like(x, number));
  };
  Value positive = equals(infinity), negative = equals(-infinity);
  if (op.getPositive() && op.getNegative())
    return w.make<arith::OrIOp>({positive, negative});
  if (op.getPositive())
    return positive;
  if (op.getNegative())
    return negative;
  return w.make<arith::AndIOp>({positive, negative});
}

static Value emitUnary(const Words &w) {
  Value x = w.in[0];
  return TypeSwitch<Operation *, Value>(w.op)
      .Case([&](graph::AbsOp) {
        if (w.isFloat())
          return w.make<math::AbsFOp>();
        return w.isUnsigned() ? x : w.make<math::AbsIOp>();
      })
      .Case([&](graph::NegOp) {
        return w.isFloat() ? w.make<arith::NegFOp>() : w.make<arith::SubIOp>({w.like(x, 0), x});
      })
      .Case([&](graph::SignOp) { return emitSign(w); })
      .Case([&](graph::ExpOp) { return w.make<math::ExpOp>(); })
      .Case([&](graph::LogOp) { return w.make<math::LogOp>(); })
      .Case([&](graph::Log1pOp) { return w.make<math::Log1pOp>(); })
      .Case([&](graph::Expm1Op) { return w.make<math::ExpM1Op>(); })
      .Case([&](graph::SqrtOp) { return w.make<math::SqrtOp>(); })
      .Case([&](graph::FloorOp) { return w.isFloat() ? w.make<math::FloorOp>() : x; })
      .Case([&](graph::CeilOp) { return w.isFloat() ? w.make<math::CeilOp>() : x; })
      .Case([&](graph::RoundOp) { return w.isFloat() ? w.make<math::RoundEvenOp>() : x; })
      .Case([&](graph::TruncOp) { return w.isFloat() ? w.make<math::TruncOp>() : x; })
      .Case([&](graph::ErfOp) { return w.make<math::ErfOp>(); })
      .Case([&](graph::SinOp) { return w.make<math::SinOp>(); })
      .Case([&](graph::CosOp) { return w.make<math::CosOp>(); })
      .Case([&](graph::TanOp) { return w.make<math::TanOp>(); })
      .Case([&](graph::AsinOp) { return w.make<math::AsinOp>(); })
      .Case([&](graph::AcosOp) { return w.make<math::AcosOp>(); })
      .Case([&](graph::AtanOp) { return w.make<math::AtanOp>(); })
      .Case([&](graph::SinhOp) { return w.make<math::SinhOp>(); })
      .Case([&](graph::CoshOp) { return w.make<math::CoshOp>(); })
      .Case([&](graph::TanhOp) { return w.make<math::TanhOp>(); })
      .Case([&](graph::AsinhOp) { return w.make<math::AsinhOp>(); })
      .Case([&](graph::AcoshOp) { return w.make<math::AcoshOp>(); })
      .Case([&](graph::AtanhOp) { return w.make<math::AtanhOp>(); })
      .Case([&](graph::SigmoidOp) {
        Value e = w.make<math::ExpOp>({w.make<arith::NegFOp>()});
        return w.make<arith::DivFOp>({w.like(x, 1), w.make<arith::AddFOp>({w.like(x, 1), e})});
      })
      .Case([&](graph::NotOp) { return w.make<arith::XOrIOp>({x, w.like(x, 1)}); })
      .Case([&](graph::BitNotOp) { return w.make<arith::XOrIOp>({x, w.like(x, -1)}); })
      .Case<graph::IsNanOp, graph::IsInfOp>([&](auto) { return emitPredicates(w); })
      .Default([](Operation *) { return Value(); });
}

static Value emitBinary(const Words &w) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  return TypeSwitch<Operation *, Value>(w.op)
      .Case([&](graph::AddOp) { return w.either<arith::AddFOp, arith::AddIOp>(); })
      .Case([&](graph::SubOp) { return w.either<arith::SubFOp, arith::SubIOp>(); })
      .Case([&](graph::MulOp) { return w.either<arith::MulFOp, arith::MulIOp>(); })
      .Case([&](graph::DivOp) {
        return w.isFloat() ? w.make<arith::DivFOp>() : emitIntegerDivision(w, false);
      })
      .Case([&](graph::ModOp op) { return emitMod(w, op.getFmod()); })
      .Case([&](graph::PowOp) { return w.isFloat() ? w.make<math::PowFOp>() : emitIntegerPow(w); })
      .Case([&](graph::MaxOp) {
        if (w.isFloat())
          return w.make<arith::MaximumFOp>();
        return w.isUnsigned() ? w.make<arith::MaxUIOp>() : w.make<arith::MaxSIOp>();
      })
      .Case([&](graph::MinOp) {
        if (w.isFloat())
          return w.make<arith::MinimumFOp>();
        return w.isUnsigned() ? w.make<arith::MinUIOp>() : w.make<arith::MinSIOp>();
      })
      .Case<graph::AndOp, graph::BitAndOp>([&](auto) { return w.make<arith::AndIOp>(); })
      .Case<graph::OrOp, graph::BitOrOp>([&](auto) { return w.make<arith::OrIOp>(); })
      .Case<graph::XorOp, graph::BitXorOp>([&](auto) { return w.make<arith::XOrIOp>(); })
      .Case([&](graph::ShiftLeftOp) { return emitShift(w, true); })
      .Case([&](graph::ShiftRightOp) { return emitShift(w, false); })
      .Case([&](graph::EqualOp) { return w.compare(F::OEQ, I::eq, I::eq); })
      .Case([&](graph::NotEqualOp) { return w.compare(F::UNE, I::ne, I::ne); })
      .Case([&](graph::LessOp) { return w.compare(F::OLT, I::slt, I::ult); })
      .Case([&](graph::LessEqualOp) { return w.compare(F::OLE, I::sle, I::ule); })
      .Case([&](graph::GreaterOp) { return w.compare(F::OGT, I::sgt, I::ugt); })
      .Case([&](graph::GreaterEqualOp) { return w.compare(F::OGE, I::sge, I::uge); })
      .Default([](Operation *) { return Value(); });
}

/// A vector that LLVM loads before it looks at the mask of a select: where no lane of a masked load
/// counts, Zen 5 takes 20 cycles.
static Value loadedWhole(Code &code, Value value) {
  if (!value.getDefiningOp<program::LoadOp>() || !Code::isVector(value))
    return value;
  return code.b.create<program::FreezeOp>(code.loc, value);
}

Value emitElementwise(Code &code, Operation *op, ArrayRef<Value> operands) {
  Words words{code, op, operands};
  if (isa<graph::SelectOp>(op))
    return words.choose(operands[0], loadedWhole(code, operands[1]),
                        loadedWhole(code, operands[2]));
  if (isa<graph::CastOp>(op))
    return emitCast(words, graph::storageOf(op->getOperand(0)), graph::storageOf(op->getResult(0)));
  if (isa<graph::BitcastOp>(op)) {
    Type target = program::computeType(graph::storageOf(op->getResult(0)));
    if (target == getElementTypeOrSelf(operands[0].getType()))
      return operands[0];
    if (auto vector = dyn_cast<VectorType>(operands[0].getType()))
      target = VectorType::get(vector.getShape(), target);
    return code.b.create<arith::BitcastOp>(code.loc, target, operands[0]);
  }
  Value result = operands.size() == 1 ? emitUnary(words) : emitBinary(words);
  assert(result && "every elementwise op has its case");
  return result;
}

/// The type in which values are kept says nothing of their sign: the operand's does.
static bool foldsUnsigned(Operation *reduction) {
  Type element = graph::storageOf(reduction->getOperand(0));
  return element.isUnsignedInteger() || element.isSignlessInteger(1);
}

Value combine(Code &code, Operation *reduction, Value x, Value y) {
  Type element = graph::storageOf(reduction->getOperand(0));
  bool isFloat = isa<FloatType>(element), isUnsigned = foldsUnsigned(reduction);
  auto make = [&](auto floating, auto isSigned, auto isNotSigned) -> Value {
    if (isFloat) {
      using Op = std::remove_pointer_t<decltype(floating)>;
      auto op = code.b.create<Op>(code.loc, x, y);
      if constexpr (llvm::is_one_of<Op, arith::MaximumFOp, arith::MinimumFOp>::value)
        op.setFastmath(arith::FastMathFlags::nsz); // which zero is left depends on the order
      return op;
    }
    if (isUnsigned)
      return code.b.create<std::remove_pointer_t<decltype(isNotSigned)>>(code.loc, x, y);
    return code.b.create<std::remove_pointer_t<decltype(isSigned)>>(code.loc, x, y);
  };
  using namespace arith;
  if (isa<graph::ReduceMaxOp>(reduction))
    return make((MaximumFOp *)0, (MaxSIOp *)0, (MaxUIOp *)0);
  if (isa<graph::ReduceMinOp>(reduction))
    return make((MinimumFOp *)0, (MinSIOp *)0, (MinUIOp *)0);
  if (isa<graph::ReduceProdOp>(reduction))
    return make((MulFOp *)0, (MulIOp *)0, (MulIOp *)0);
  if (auto pool = dyn_cast<graph::PoolOp>(reduction); pool && pool.getKind() == "max")
    return make((MaximumFOp *)0, (MaxSIOp *)0, (MaxUIOp *)0);
  return make((AddFOp *)0, (AddIOp *)0, (AddIOp *)0);
}

Value neutral(Code &code, Operation *reduction, Type element) {
  auto pool = dyn_cast<graph::PoolOp>(reduction);
  bool isMax = isa<graph::ReduceMaxOp>(reduction) || (pool && pool.getKind() == "max");
  bool isMin = isa<graph::ReduceMinOp>(reduction);
  if (!isMax && !isMin)
    return code.constantOf(element, isa<graph::ReduceProdOp>(reduction) ? 1 : 0);
  if (isa<FloatType>(element)) {
    double infinity = std::numeric_limits<double>::infinity();
    return code.constantOf(element, isMax ? -infinity : infinity);
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  bool isUnsigned = foldsUnsigned(reduction);
  APInt limit = isMax ? (isUnsigned ? APInt::getZero(bits) : APInt::getSignedMinValue(bits))
                      : (isUnsigned ? APInt::getAllOnes(bits) : APInt::getSignedMaxValue(bits));
  return code.b.create<arith::ConstantOp>(code.loc,
                                          IntegerAttr::get(program::computeType(element), limit));
}

Value isBefore(Code &code, Type element, bool descending, Value x, Value y) {
  if (isa<FloatType>(element)) {
    using P = arith::CmpFPredicate;
    Value goes = code.b.create<arith::CmpFOp>(code.loc, descending ? P::UGT : P::ULT, x, y);
    Value isNumber = code.b.create<arith::CmpFOp>(code.loc, P::ORD, y, y);
    return code.b.create<arith::AndIOp>(code.loc, goes, isNumber);
  }
  using P = arith::CmpIPredicate;
  bool isUnsigned = element.isUnsignedInteger() || element.isSignlessInteger(1);
  P predicate = descending ? (isUnsigned ? P::ugt : P::sgt) : (isUnsigned ? P::ult : P::slt);
  return code.b.create<arith::CmpIOp>(code.loc, predicate, x, y);
}

Value combineLanes(Code &code, Operation *reduction, Value vector) {
  if (!Code::isVector(vector))
    return vector;
  // Halves are combined as vectors, so that a sum stays a tree and NaN is kept.
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  while (lanes > 1) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < lanes / 2; ++i) {
      low.push_back(i);
      high.push_back(i + lanes / 2);
    }
    Value a = code.b.create<vector::ShuffleOp>(code.loc, vector, vector, low);
    Value b = code.b.create<vector::ShuffleOp>(code.loc, vector, vector, high);
    vector = combine(code, reduction, a, b);
    lanes /= 2;
  }
  return code.b.create<vector::ExtractOp>(code.loc, vector, ArrayRef<int64_t>{0});
}

} // namespace heddle::lower
