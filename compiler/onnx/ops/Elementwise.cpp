// Elementwise: arithmetic, comparison, logic and casts.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

template <typename Op> static void unary(Node &n) { n.set(n.unary<Op>(n.in(0))); }
template <typename Op> static void binary(Node &n) {
  n.set(n.binary<Op>(n.in(0), n.legacyAligned(1)));
}
template <typename Op> static void compare(Node &n) {
  n.set(n.compare<Op>(n.in(0), n.legacyAligned(1)));
}

/// Max, Min, Sum, Mean: any number of operands.
template <typename Op> static Value fold(Node &n) {
  Value total = n.in(0);
  for (size_t i = 1; i < n.inputs(); ++i)
    total = n.binary<Op>(total, n.in(i));
  return total;
}
template <typename Op> static void variadic(Node &n) { n.set(fold<Op>(n)); }
static void meanOf(Node &n) { n.set(n.div(fold<AddOp>(n), static_cast<double>(n.inputs()))); }

template <typename Op> static void logical(Node &n) {
  Value x = n.in(0), y = n.legacyAligned(1);
  if (!elementOf(x).isInteger(1))
    refuse("operands have element type " + nameOf(elementOf(x)) + ", but must be bool");
  n.set(n.binary<Op>(x, y));
}

/// The result has the type of the base; where the exponent says more than that type can, the power
/// is computed in a wider one.
static void importPow(Node &n) {
  Value x = n.in(0), y = n.legacyAligned(1);
  Type base = elementOf(x), wide = base;
  if (isFloat(y) && !isa<FloatType>(base))
    wide = n.builder.getF64Type();
  else if (isFloat(y) && elementOf(y).getIntOrFloatBitWidth() > base.getIntOrFloatBitWidth())
    wide = elementOf(y);
  else if (!isFloat(x) && elementOf(y) != base)
    wide = n.i64();
  n.set(n.cast(n.binary<PowOp>(n.cast(x, wide), n.cast(y, wide)), base));
}

static void importMod(Node &n) {
  bool fmod = n.getInt("fmod", 0);
  if (!fmod && isa<FloatType>(elementOf(n.in(0))))
    refuse("'fmod' must be 1 for element type " + nameOf(elementOf(n.in(0))));
  n.set(n.binary<ModOp>(n.in(0), n.in(1), {n.flag("fmod", fmod)}));
}

static void importBitShift(Node &n) {
  std::string direction = n.getText("direction", "");
  if (direction == "LEFT")
    return n.set(n.binary<ShiftLeftOp>(n.in(0), n.in(1)));
  if (direction == "RIGHT")
    return n.set(n.binary<ShiftRightOp>(n.in(0), n.in(1)));
  refuse("'direction' is '" + direction + "', but must be 'LEFT' or 'RIGHT'");
}

static void importReciprocal(Node &n) {
  Value x = n.in(0);
  n.set(n.div(n.scalar(elementOf(x), 1), x));
}

static void importIsInf(Node &n) {
  n.set(n.infer<IsInfOp>(n.in(0), {n.flag("negative", n.getInt("detect_negative", 1)),
                                   n.flag("positive", n.getInt("detect_positive", 1))}));
}

static void importIsNan(Node &n) { n.set(n.infer<IsNanOp>(n.in(0))); }

static void importWhere(Node &n) { n.set(n.select(n.in(0), n.in(1), n.in(2))); }

static void importCast(Node &n) {
  n.set(n.cast(n.in(0), n.getElement("to", n.f32()), n.getInt("saturate", 1),
               n.getText("round_mode", "up")));
}
static void importBitCast(Node &n) {
  Value x = n.in(0);
  Type to = n.getElement("to", elementOf(x));
  if (elementOf(x) == to)
    return n.set(x);
  auto widthOf = [](Type element) { return storageOf(element).getIntOrFloatBitWidth(); };
  // A truth value is stored as a byte.
  Type byte = IntegerType::get(n.context(), 8, IntegerType::Unsigned);
  if (elementOf(x).isInteger(1) && widthOf(to) == 8)
    x = n.cast(x, byte);
  if (to.isInteger(1) && widthOf(elementOf(x)) == 8)
    return n.set(
        n.cast(elementOf(x) == byte ? x : n.typed<BitcastOp>(n.tensor(dimsOf(x), byte), x), to));
  if (elementOf(x) == to)
    return n.set(x);
  if (widthOf(elementOf(x)) != widthOf(to))
    refuse("elements of " + nameOf(elementOf(x)) + " and " + nameOf(to) +
           " have different numbers of bits");
  n.set(n.typed<BitcastOp>(n.tensor(dimsOf(x), to), x));
}
static void importCastLike(Node &n) {
  n.set(
      n.cast(n.in(0), elementOf(n.in(1)), n.getInt("saturate", 1), n.getText("round_mode", "up")));
}

static void importClip(Node &n) {
  Value x = n.in(0);
  if (n.opset < 11) {
    if (n.hasAttribute("min"))
      x = n.max(x, n.getFloat("min", 0));
    if (n.hasAttribute("max"))
      x = n.min(x, n.getFloat("max", 0));
    return n.set(x);
  }
  for (size_t i : {1, 2})
    if (n.has(i) && elementCount(dimsOf(n.in(i))) != Dim(1))
      refuse("input " + Twine(i) + " must be a scalar");
  auto number = [&](size_t i) { return rankOf(n.in(i)) == 0 ? n.in(i) : n.reshape(n.in(i), {}); };
  if (n.has(1))
    x = n.binary<MaxOp>(x, number(1));
  if (n.has(2))
    x = n.binary<MinOp>(x, number(2));
  n.set(x);
}

static void importIdentity(Node &n) { n.set(n.in(0)); }

OpRows elementwiseRows() {
  static const OpRow rows[] = {
      {"Abs", "", 1, 27, unary<AbsOp>},
      {"Neg", "", 1, 27, unary<NegOp>},
      {"Sign", "", 9, 27, unary<SignOp>},
      {"Exp", "", 1, 27, unary<ExpOp>},
      {"Log", "", 1, 27, unary<LogOp>},
      {"Sqrt", "", 1, 27, unary<SqrtOp>},
      {"Floor", "", 1, 27, unary<FloorOp>},
      {"Ceil", "", 1, 27, unary<CeilOp>},
      {"Round", "", 11, 27, unary<RoundOp>},
      {"Erf", "", 9, 27, unary<ErfOp>},
      {"Sin", "", 7, 27, unary<SinOp>},
      {"Cos", "", 7, 27, unary<CosOp>},
      {"Tan", "", 7, 27, unary<TanOp>},
      {"Asin", "", 7, 27, unary<AsinOp>},
      {"Acos", "", 7, 27, unary<AcosOp>},
      {"Atan", "", 7, 27, unary<AtanOp>},
      {"Sinh", "", 9, 27, unary<SinhOp>},
      {"Cosh", "", 9, 27, unary<CoshOp>},
      {"Asinh", "", 9, 27, unary<AsinhOp>},
      {"Acosh", "", 9, 27, unary<AcoshOp>},
      {"Atanh", "", 9, 27, unary<AtanhOp>},
      {"Not", "", 1, 27, unary<NotOp>},
      {"BitwiseNot", "", 18, 27, unary<BitNotOp>},
      {"Reciprocal", "", 1, 27, importReciprocal},
      {"Add", "", 1, 27, binary<AddOp>},
      {"Sub", "", 1, 27, binary<SubOp>},
      {"Mul", "", 1, 27, binary<MulOp>},
      {"Div", "", 1, 27, binary<DivOp>},
      {"Pow", "", 1, 27, importPow},
      {"Mod", "", 10, 27, importMod},
      {"Max", "", 1, 27, variadic<MaxOp>},
      {"Min", "", 1, 27, variadic<MinOp>},
      {"Sum", "", 1, 27, variadic<AddOp>},
      {"Mean", "", 1, 27, meanOf},
      {"And", "", 1, 27, logical<AndOp>},
      {"Or", "", 1, 27, logical<OrOp>},
      {"Xor", "", 1, 27, logical<XorOp>},
      {"BitwiseAnd", "", 18, 27, binary<BitAndOp>},
      {"BitwiseOr", "", 18, 27, binary<BitOrOp>},
      {"BitwiseXor", "", 18, 27, binary<BitXorOp>},
      {"BitShift", "", 11, 27, importBitShift},
      {"Equal", "", 1, 27, compare<EqualOp>},
      {"Less", "", 1, 27, compare<LessOp>},
      {"LessOrEqual", "", 12, 27, compare<LessEqualOp>},
      {"Greater", "", 1, 27, compare<GreaterOp>},
      {"GreaterOrEqual", "", 12, 27, compare<GreaterEqualOp>},
      {"IsNaN", "", 9, 27, importIsNan},
      {"IsInf", "", 10, 27, importIsInf},
      {"Where", "", 9, 27, importWhere},
      {"Cast", "", 1, 27, importCast},
      {"BitCast", "", 26, 27, importBitCast},
      {"CastLike", "", 15, 27, importCastLike},
      {"Clip", "", 1, 27, importClip},
      {"Identity", "", 1, 27, importIdentity, true},
  };
  return rows;
}

} // namespace heddle::onnx
