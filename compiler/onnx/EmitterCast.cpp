// EmitterCast: conversions, also to and from types that arithmetic does not know: float4e2m1 and
// float8e8m0 are bits, read by table and written by comparing; strings and lists have ops of their
// own.

#include "compiler/onnx/Emitter.h"

using namespace mlir;

namespace heddle::onnx {

static constexpr double kFloat4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

/// The f32 that each pattern of bits stands for.
static std::vector<float> tableOf(Type element) {
  std::vector<float> table;
  if (graph::isFloat4(element)) {
    for (int sign : {1, -1})
      for (double value : kFloat4)
        table.push_back(static_cast<float>(sign * value));
    return table;
  }
  for (int exponent = -127; exponent < 128; ++exponent)
    table.push_back(std::ldexp(1.0f, exponent));
  table.push_back(std::numeric_limits<float>::quiet_NaN());
  return table;
}

Value Emitter::floatOf(Value bits) {
  std::vector<float> table = tableOf(elementOf(bits));
  Type storage = graph::storageOf(bits);
  Value index = cast(typed<graph::BitcastOp>(tensor(dimsOf(bits), storage), bits), i64());
  ArrayRef<char> bytes(reinterpret_cast<const char *>(table.data()), table.size() * sizeof(float));
  auto type = RankedTensorType::get({static_cast<int64_t>(table.size())}, f32());
  return gather(constant(graph::constantAttr(type, bytes)), index, 0);
}

/// Rounds to the nearest of the 8 magnitudes, ties to the even code, larger ones to the largest.
/// NaN, which the type lacks, becomes -0.
Value Emitter::float4Of(Value x) {
  Value magnitude = unary<graph::AbsOp>(x), code = scalar(i32(), 0);
  for (int upper = 1; upper < 8; ++upper) {
    Value middle = scalar(f32(), (kFloat4[upper - 1] + kFloat4[upper]) / 2);
    Value isAbove = upper % 2 == 0 ? compare<graph::GreaterEqualOp>(magnitude, middle)
                                   : compare<graph::GreaterOp>(magnitude, middle);
    code = add(code, cast(isAbove, i32()));
  }
  Value word = typed<graph::BitcastOp>(tensor(dimsOf(x), i32()), x);
  Value isNegative = compare<graph::LessOp>(word, integerScalar(i32(), 0));
  isNegative = binary<graph::OrOp>(isNegative, infer<graph::IsNanOp>(x));
  code = add(code, mul(cast(isNegative, i32()), 8));
  auto element = graph::Float4Type::get(context());
  return typed<graph::BitcastOp>(tensor(dimsOf(x), element), cast(code, graph::storageOf(element)));
}

/// The exponent of an f32, moved up as the mode says; infinities and NaN are 255. The sign is lost.
Value Emitter::float8ScaleOf(Value x, bool saturate, StringRef roundMode) {
  Value word = typed<graph::BitcastOp>(tensor(dimsOf(x), i32()), x);
  Value magnitude = binary<graph::BitAndOp>(word, integerScalar(i32(), 0x7fffffff));
  Value exponent = binary<graph::ShiftRightOp>(magnitude, integerScalar(i32(), 23));
  Value rest = binary<graph::BitAndOp>(word, integerScalar(i32(), 0x7fffff));
  Value movesUp;
  if (roundMode == "up") {
    movesUp = compare<graph::GreaterOp>(rest, integerScalar(i32(), 0));
  } else if (roundMode == "nearest") {
    // A tie goes up, but that between 0 and the smallest normal number down.
    Value half = integerScalar(i32(), 0x400000);
    Value isNormal = compare<graph::GreaterOp>(exponent, integerScalar(i32(), 0));
    movesUp =
        binary<graph::OrOp>(compare<graph::GreaterOp>(rest, half),
                            binary<graph::AndOp>(compare<graph::EqualOp>(rest, half), isNormal));
  } else if (roundMode != "down") {
    refuse("'round_mode' is '" + roundMode + "', but must be up, down or nearest");
  }
  Value largest = integerScalar(i32(), 254);
  Value code = exponent;
  if (movesUp)
    code = add(code, cast(movesUp, i32()));
  if (saturate)
    code = binary<graph::MinOp>(code, largest);
  code = select(compare<graph::GreaterOp>(exponent, largest), exponent, code);
  auto element = graph::Scale8Type::get(context());
  return typed<graph::BitcastOp>(tensor(dimsOf(x), element), cast(code, graph::storageOf(element)));
}

/// The type in which numbers of `element` go to strings and come from them.
static Type printedType(Emitter &e, Type element) {
  if (isa<FloatType>(element) || graph::isBits(element))
    return element.isF64() ? element : e.f32();
  if (element.isInteger(1))
    return element;
  return element.isUnsignedInteger() ? IntegerType::get(e.context(), 64, IntegerType::Unsigned)
                                     : e.i64();
}

Value Emitter::cast(Value x, Type element, bool saturate, StringRef roundMode) {
  Type from = elementOf(x);
  if (from == element)
    return x;
  if (graph::isString(element))
    return typed<graph::StringCastOp>(tensor(dimsOf(x), element),
                                      cast(x, printedType(*this, from)));
  if (graph::isString(from)) {
    Type middle = element.isInteger(1) ? i64() : printedType(*this, element);
    Value number = typed<graph::StringCastOp>(tensor(dimsOf(x), middle), x);
    return cast(number, element, saturate, roundMode);
  }
  if (graph::isBits(from))
    return cast(floatOf(x), element, saturate, roundMode);
  if (graph::isFloat4(element))
    return float4Of(cast(x, f32()));
  if (graph::isFloat8Scale(element))
    return float8ScaleOf(cast(x, f32()), saturate, roundMode);
  return typed<graph::CastOp>(tensor(dimsOf(x), element), x, {flag("saturate", saturate)});
}

Value Emitter::asList(Value list, StringRef kind, int64_t rank) {
  graph::ListType from = graph::listOf(list);
  Type type = graph::listTensor(context(), kind, from.getElement(), rank);
  return list.getType() == type ? list : typed<graph::ListCastOp>(type, list);
}

} // namespace heddle::onnx
