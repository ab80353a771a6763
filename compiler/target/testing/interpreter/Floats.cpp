// Floats: ops of arith and math on floats, lane by lane. They are computed in f64 and rounded once,
// but for conversions and products with a sum, which are rounded where they are made.

#include "compiler/target/testing/interpreter/Interpreter.h"
#include "compiler/target/testing/interpreter/Numbers.h"

using namespace mlir;

namespace heddle::interpreter {

using Unary = double (*)(double x);
using Binary = double (*)(double x, double y);

static Action eachOf(Unary function) {
  return laneByLane([function](const Step &step, auto x) {
    return bitsOf(function(realOf(x(0), step.element)), step.resultElement);
  });
}

static Action eachOfTwo(Binary function) {
  return laneByLane([function](const Step &step, auto x) {
    return bitsOf(function(realOf(x(0), step.element), realOf(x(1), step.element)),
                  step.resultElement);
  });
}

/// Changes the sign, the highest bit, alone.
static Action ofSign(uint64_t (*function)(uint64_t x, uint64_t sign)) {
  return laneByLane([function](const Step &step, auto x) {
    return function(x(0), uint64_t(1) << (step.width - 1));
  });
}

/// A NaN wins, and -0 is less than 0.
static double maximum(double x, double y) {
  if (std::isnan(x) || x > y)
    return x;
  return x == y && std::signbit(y) ? x : y;
}
static double minimum(double x, double y) {
  if (std::isnan(x) || x < y)
    return x;
  return x == y && !std::signbit(y) ? x : y;
}

/// Converts to an integer: a value outside of so many bits becomes the least of them.
static uint64_t integerOf(double x, unsigned width, bool isSigned) {
  double end = std::ldexp(1.0, width <= 32 ? 31 : 63), unsignedEnd = std::ldexp(1.0, 64);
  if (!isSigned && x >= 0 && x < unsignedEnd)
    return uint64_t(x);
  if (x > -end - 1 && x >= -std::ldexp(1.0, 63) && x < end)
    return uint64_t(int64_t(x));
  return uint64_t(int64_t(-end));
}

static Action toInteger(bool isSigned) {
  return laneByLane([isSigned](const Step &step, auto x) {
    return narrowed(integerOf(realOf(x(0), step.element), step.resultWidth, isSigned),
                    step.resultWidth);
  });
}

static Action fromInteger(bool isSigned) {
  return laneByLane([isSigned](const Step &step, auto x) {
    int64_t number = withSign(x(0), step.width);
    double real = step.resultElement.isF64() ? (isSigned ? double(number) : double(x(0)))
                                             : (isSigned ? float(number) : float(x(0)));
    return bitsOf(real, step.resultElement);
  });
}

static void addFunctions(Actions &actions) {
  const std::pair<const char *, Unary> functions[] = {
      {"math.exp", std::exp},     {"math.exp2", std::exp2},   {"math.expm1", std::expm1},
      {"math.log", std::log},     {"math.log1p", std::log1p}, {"math.log2", std::log2},
      {"math.log10", std::log10}, {"math.sqrt", std::sqrt},   {"math.cbrt", std::cbrt},
      {"math.erf", std::erf},     {"math.sin", std::sin},     {"math.cos", std::cos},
      {"math.tan", std::tan},     {"math.asin", std::asin},   {"math.acos", std::acos},
      {"math.atan", std::atan},   {"math.sinh", std::sinh},   {"math.cosh", std::cosh},
      {"math.tanh", std::tanh},   {"math.asinh", std::asinh}, {"math.acosh", std::acosh},
      {"math.atanh", std::atanh}, {"math.floor", std::floor}, {"math.ceil", std::ceil},
      {"math.trunc", std::trunc}, {"math.round", std::round}, {"math.roundeven", std::nearbyint}};
  for (auto [name, function] : functions)
    actions[name] = eachOf(function);
  actions["math.rsqrt"] = eachOf([](double x) { return 1 / std::sqrt(x); });
  actions["math.powf"] = eachOfTwo(std::pow);
  actions["math.atan2"] = eachOfTwo(std::atan2);
  actions["math.copysign"] = eachOfTwo(std::copysign);
  actions["math.fma"] = laneByLane([](const Step &step, auto x) {
    double a = realOf(x(0), step.element), b = realOf(x(1), step.element);
    double c = realOf(x(2), step.element);
    double sum = step.element.isF32() ? std::fma(float(a), float(b), float(c)) : std::fma(a, b, c);
    return bitsOf(sum, step.resultElement);
  });
}

void addFloats(Actions &actions) {
  addFunctions(actions);
  actions["arith.addf"] = eachOfTwo([](double x, double y) { return x + y; });
  actions["arith.subf"] = eachOfTwo([](double x, double y) { return x - y; });
  actions["arith.mulf"] = eachOfTwo([](double x, double y) { return x * y; });
  actions["arith.divf"] = eachOfTwo([](double x, double y) { return x / y; });
  actions["arith.remf"] = eachOfTwo(std::fmod);
  actions["arith.maxnumf"] = eachOfTwo(std::fmax);
  actions["arith.minnumf"] = eachOfTwo(std::fmin);
  actions["arith.maximumf"] = eachOfTwo(maximum);
  actions["arith.minimumf"] = eachOfTwo(minimum);
  actions["arith.negf"] = ofSign([](uint64_t x, uint64_t sign) { return x ^ sign; });
  actions["math.absf"] = ofSign([](uint64_t x, uint64_t sign) { return x & ~sign; });
  actions["arith.cmpf"] = laneByLane([](const Step &step, auto x) {
    APFloat a(realOf(x(0), step.element)), b(realOf(x(1), step.element));
    return arith::applyCmpPredicate(cast<arith::CmpFOp>(step.op).getPredicate(), a, b);
  });
  for (const char *name : {"arith.extf", "arith.truncf"})
    actions[name] = eachOf([](double x) { return x; });
  actions["arith.fptosi"] = toInteger(true);
  actions["arith.fptoui"] = toInteger(false);
  actions["arith.sitofp"] = fromInteger(true);
  actions["arith.uitofp"] = fromInteger(false);
}

} // namespace heddle::interpreter
