// Elementwise: each function of numbers once, for all element types.

#include "compiler/reference/Families.h"

#include <cmath>

using namespace mlir;

namespace heddle::reference {

using namespace graph;

static double absolute(double x) { return std::fabs(x); }
static double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
static double signOf(double x) { return x != x ? x : (x > 0) - (x < 0); }

using FloatFunction = double (*)(double);
static FloatFunction floatFunctionOf(Operation *op) {
  using F = FloatFunction;
  return llvm::TypeSwitch<Operation *, F>(op)
      .Case<AbsOp>([](auto) -> F { return absolute; })
      .Case<NegOp>([](auto) -> F { return [](double x) { return -x; }; })
      .Case<SignOp>([](auto) -> F { return signOf; })
      .Case<ExpOp>([](auto) -> F { return std::exp; })
      .Case<LogOp>([](auto) -> F { return std::log; })
      .Case<Log1pOp>([](auto) -> F { return std::log1p; })
      .Case<Expm1Op>([](auto) -> F { return std::expm1; })
      .Case<SqrtOp>([](auto) -> F { return std::sqrt; })
      .Case<FloorOp>([](auto) -> F { return std::floor; })
      .Case<CeilOp>([](auto) -> F { return std::ceil; })
      .Case<RoundOp>([](auto) -> F { return std::nearbyint; })
      .Case<TruncOp>([](auto) -> F { return std::trunc; })
      .Case<ErfOp>([](auto) -> F { return std::erf; })
      .Case<SinOp>([](auto) -> F { return std::sin; })
      .Case<CosOp>([](auto) -> F { return std::cos; })
      .Case<TanOp>([](auto) -> F { return std::tan; })
      .Case<AsinOp>([](auto) -> F { return std::asin; })
      .Case<AcosOp>([](auto) -> F { return std::acos; })
      .Case<AtanOp>([](auto) -> F { return std::atan; })
      .Case<SinhOp>([](auto) -> F { return std::sinh; })
      .Case<CoshOp>([](auto) -> F { return std::cosh; })
      .Case<TanhOp>([](auto) -> F { return std::tanh; })
      .Case<AsinhOp>([](auto) -> F { return std::asinh; })
      .Case<AcoshOp>([](auto) -> F { return std::acosh; })
      .Case<AtanhOp>([](auto) -> F { return std::atanh; })
      .Case<SigmoidOp>([](auto) -> F { return sigmoid; })
      .Default([](auto) -> F { return nullptr; });
}

template <typename T> using Unary = std::function<T(T)>;
template <typename T> static Unary<T> integerFunctionOf(Operation *op, unsigned bits) {
  using F = Unary<T>;
  const uint64_t mask = bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  return llvm::TypeSwitch<Operation *, F>(op)
      .template Case<AbsOp>(
          [](auto) -> F { return [](T x) { return x < T(0) ? times(x, T(-1)) : x; }; })
      .template Case<NegOp>([](auto) -> F { return [](T x) { return times(x, T(-1)); }; })
      .template Case<SignOp>(
          [](auto) -> F { return [](T x) { return T((x > T(0)) - (x < T(0))); }; })
      .template Case<FloorOp, CeilOp, RoundOp, TruncOp>(
          [](auto) -> F { return [](T x) { return x; }; })
      .template Case<NotOp>([](auto) -> F { return [](T x) { return T(x == T(0)); }; })
      .template Case<BitNotOp>(
          [mask](auto) -> F { return [mask](T x) { return T(~uint64_t(x) & mask); }; })
      .Default([](auto) -> F { return nullptr; });
}

static Results computeUnary(const Call &call) {
  const Tensor &x = call[0];
  auto result = call.allocate(x.shape);
  if (!result)
    return result.takeError();
  auto apply = [&](auto function, auto zero) -> Results {
    using T = decltype(zero);
    if (!function)
      return call.error("is not defined for elements of " +
                        Twine(isFloat(x.element) ? "floats" : "integers"));
    std::vector<T> values = load<T>(x);
    for (T &value : values)
      value = function(value);
    store<T>(*result, values);
    return single(*result);
  };
  unsigned bits = storageOf(x.element).getIntOrFloatBitWidth();
  if (isFloat(x.element))
    return apply(floatFunctionOf(call.op), double());
  if (isUnsigned(x.element))
    return apply(integerFunctionOf<uint64_t>(call.op, bits), uint64_t());
  return apply(integerFunctionOf<int64_t>(call.op, bits), int64_t());
}

/// Sets `isUndefined` for division by zero.
template <typename T> static T divide(T x, T y, bool &isUndefined) {
  if constexpr (std::is_floating_point_v<T>)
    return x / y;
  isUndefined |= y == T(0);
  if (y == T(0))
    return T(0);
  return y == T(-1) && std::is_signed_v<T> ? times(x, T(-1)) : static_cast<T>(x / y);
}

template <typename T> static T power(T x, T y, bool &isUndefined) {
  if constexpr (std::is_floating_point_v<T>)
    return std::pow(x, y);
  if (y < T(0)) {
    bool isOdd = static_cast<uint64_t>(y) & 1;
    isUndefined |= x == T(0);
    return x == T(1) ? T(1) : x == T(-1) ? (isOdd ? T(-1) : T(1)) : T(0);
  }
  T result = T(1);
  for (uint64_t exponent = static_cast<uint64_t>(y); exponent != 0; exponent >>= 1) {
    if (exponent & 1)
      result = times(result, x);
    x = times(x, x);
  }
  return result;
}

template <typename T> static T remainder(T x, T y, bool isSignOfX, bool &isUndefined) {
  T rest;
  if constexpr (std::is_floating_point_v<T>) {
    rest = std::fmod(x, y);
  } else {
    isUndefined |= y == T(0);
    if (y == T(0) || (y == T(-1) && std::is_signed_v<T>))
      return T(0);
    rest = static_cast<T>(x % y);
  }
  if (!isSignOfX && rest != T(0) && (rest < T(0)) != (y < T(0)))
    rest = plus(rest, y);
  return rest;
}

template <typename T> using Binary = std::function<T(T, T)>;
template <typename T> static Binary<T> arithmeticOf(Operation *op, bool &isUndefined) {
  using F = Binary<T>;
  return llvm::TypeSwitch<Operation *, F>(op)
      .template Case<AddOp>([](auto) -> F { return plus<T>; })
      .template Case<SubOp>(
          [](auto) -> F { return [](T x, T y) { return plus(x, times(y, T(-1))); }; })
      .template Case<MulOp>([](auto) -> F { return times<T>; })
      .template Case<DivOp>(
          [&](auto) -> F { return [&](T x, T y) { return divide(x, y, isUndefined); }; })
      .template Case<PowOp>(
          [&](auto) -> F { return [&](T x, T y) { return power(x, y, isUndefined); }; })
      .template Case<MaxOp>([](auto) -> F { return larger<T>; })
      .template Case<MinOp>([](auto) -> F { return smaller<T>; })
      .template Case<ModOp>([&](ModOp mod) -> F {
        bool isSignOfX = mod.getFmod();
        return
            [&isUndefined, isSignOfX](T x, T y) { return remainder(x, y, isSignOfX, isUndefined); };
      })
      .Default([](auto) -> F { return nullptr; });
}

static Binary<uint64_t> bitsFunctionOf(Operation *op, unsigned bits) {
  using F = Binary<uint64_t>;
  using T = uint64_t;
  const T mask = bits >= 64 ? ~T(0) : (T(1) << bits) - 1;
  return llvm::TypeSwitch<Operation *, F>(op)
      .Case<AndOp, BitAndOp>([](auto) -> F { return [](T x, T y) { return x & y; }; })
      .Case<OrOp, BitOrOp>([](auto) -> F { return [](T x, T y) { return x | y; }; })
      .Case<XorOp, BitXorOp>([](auto) -> F { return [](T x, T y) { return x ^ y; }; })
      .Case<ShiftLeftOp>([=](auto) -> F {
        return [=](T x, T y) { return (y & mask) >= bits ? T(0) : x << (y & mask); };
      })
      .Case<ShiftRightOp>([=](auto) -> F {
        return [=](T x, T y) { return (y & mask) >= bits ? T(0) : (x & mask) >> (y & mask); };
      })
      .Default([](auto) -> F { return nullptr; });
}

static Results computeBinary(const Call &call) {
  const Tensor &x = call[0], &y = call[1];
  auto result = call.allocate(x.shape);
  if (!result)
    return result.takeError();
  bool isUndefined = false;
  auto apply = [&](auto function, auto zero) -> Results {
    using T = decltype(zero);
    if (!function)
      return call.error("is not defined for elements of this type");
    std::vector<T> left = load<T>(x), right = load<T>(y);
    for (auto [a, b] : llvm::zip(left, right))
      a = function(a, b);
    if (isUndefined)
      return call.error("an integer is divided by zero");
    store<T>(*result, left);
    return single(*result);
  };
  if (!isFloat(x.element))
    if (auto function = bitsFunctionOf(call.op, storageOf(x.element).getIntOrFloatBitWidth()))
      return apply(function, uint64_t());
  return withNumber(x.element, [&](auto zero) {
    return apply(arithmeticOf<decltype(zero)>(call.op, isUndefined), zero);
  });
}

template <typename T> static bool (*comparisonOf(Operation *op))(T, T) {
  using F = bool (*)(T, T);
  return llvm::TypeSwitch<Operation *, F>(op)
      .template Case<EqualOp>([](auto) -> F { return [](T x, T y) { return x == y; }; })
      .template Case<NotEqualOp>([](auto) -> F { return [](T x, T y) { return x != y; }; })
      .template Case<LessOp>([](auto) -> F { return [](T x, T y) { return x < y; }; })
      .template Case<LessEqualOp>([](auto) -> F { return [](T x, T y) { return x <= y; }; })
      .template Case<GreaterOp>([](auto) -> F { return [](T x, T y) { return x > y; }; })
      .template Case<GreaterEqualOp>([](auto) -> F { return [](T x, T y) { return x >= y; }; });
}

static Results computePredicate(const Call &call) {
  auto result = call.allocate(call[0].shape);
  if (!result)
    return result.takeError();
  char *truth = result->data();
  if (isa<IsNanOp, IsInfOp>(call.op)) {
    auto isInf = dyn_cast<IsInfOp>(call.op);
    for (auto [i, x] : llvm::enumerate(load<double>(call[0])))
      truth[i] = isInf ? std::isinf(x) && (x < 0 ? isInf.getNegative() : isInf.getPositive())
                       : std::isnan(x);
    return single(*result);
  }
  withNumber(call[0].element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> x = load<T>(call[0]), y = load<T>(call[1]);
    auto holds = comparisonOf<T>(call.op);
    for (size_t i = 0; i < x.size(); ++i)
      truth[i] = holds(x[i], y[i]);
    return 0;
  });
  return single(*result);
}

static Results computeCast(const Call &call) {
  const Tensor &x = call[0];
  Type to = call.elementOfResult();
  auto result = call.allocate(x.shape);
  if (!result)
    return result.takeError();
  bool saturates = true;
  if (auto cast = dyn_cast<CastOp>(call.op))
    saturates = cast.getSaturate();
  withNumber(x.element, [&](auto zero) {
    using T = decltype(zero);
    store<T>(*result, load<T>(x), saturates && isFloat(to));
    return 0;
  });
  return single(*result);
}

static Results computeSelect(const Call &call) {
  auto result = call.allocate(call[1].shape);
  if (!result)
    return result.takeError();
  const char *condition = call[0].bytes().data();
  int64_t width = result->width();
  for (int64_t i = 0, count = result->count(); i < count; ++i)
    std::memcpy(result->data() + i * width, call[condition[i] ? 1 : 2].bytes().data() + i * width,
                width);
  return single(*result);
}

static Results computeBitcast(const Call &call) {
  Tensor result = call[0];
  result.element = call.elementOfResult();
  if (result.width() != call[0].width())
    return call.error("element types must have one width");
  return single(result);
}

static Results computeLookup(const Call &call) {
  const Tensor &x = call[0];
  auto result = call.allocate(x.shape);
  if (!result)
    return result.takeError();
  std::vector<char> storage;
  ArrayRef<char> table = constantBytes(cast<LookupOp>(call.op).getTable(), storage);
  for (int64_t i = 0, count = x.count(); i < count; ++i)
    result->data()[i] = table[static_cast<uint8_t>(x.bytes()[i])];
  return single(*result);
}

Results computeElementwise(const Call &call) {
  for (const Tensor &operand : call.operands)
    if (operand.shape != call[0].shape)
      return call.error("operands must have one shape, but have " + textOf(call[0].shape) +
                        " and " + textOf(operand.shape));
  if (isa<CastOp>(call.op))
    return computeCast(call);
  if (isa<BitcastOp>(call.op))
    return computeBitcast(call);
  if (isa<SelectOp>(call.op))
    return computeSelect(call);
  if (isa<LookupOp>(call.op))
    return computeLookup(call);
  if (call.op->hasTrait<TruthValued>())
    return computePredicate(call);
  return call.operands.size() == 1 ? computeUnary(call) : computeBinary(call);
}

} // namespace heddle::reference
