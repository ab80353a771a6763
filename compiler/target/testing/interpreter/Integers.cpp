// Integers: ops of arith and math on integers, lane by lane. All are defined for all operands, as a
// target may make of them what it likes where MLIR says nothing.

#include "compiler/target/testing/interpreter/Interpreter.h"
#include "compiler/target/testing/interpreter/Numbers.h"

using namespace mlir;

namespace heddle::interpreter {

using Unary = uint64_t (*)(uint64_t x, unsigned width);
using Binary = uint64_t (*)(uint64_t x, uint64_t y, unsigned width);
using Signed = int64_t (*)(int64_t x, int64_t y);

static Action eachOf(Unary function) {
  return laneByLane([function](const Step &step, auto x) {
    return narrowed(function(x(0), step.width), step.resultWidth);
  });
}

template <typename Function> static Action eachOfTwo(Function function) {
  return laneByLane([function](const Step &step, auto x) {
    return narrowed(function(x(0), x(1), step.width), step.resultWidth);
  });
}

static Action ofUnsigned(Binary function) { return eachOfTwo(function); }
static Action ofSigned(Signed function) {
  return eachOfTwo([function](uint64_t x, uint64_t y, unsigned width) {
    return uint64_t(function(withSign(x, width), withSign(y, width)));
  });
}

static int64_t divided(int64_t x, int64_t y) {
  return y == 0 ? 0 : y == -1 ? int64_t(0 - uint64_t(x)) : x / y;
}
static int64_t remainderOf(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
static int64_t dividedDown(int64_t x, int64_t y) {
  return divided(x, y) - (remainderOf(x, y) != 0 && (x < 0) != (y < 0));
}
static int64_t dividedUp(int64_t x, int64_t y) {
  return divided(x, y) + (remainderOf(x, y) != 0 && (x < 0) == (y < 0));
}
static int64_t powerOf(int64_t x, int64_t y) {
  if (y < 0)
    return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  uint64_t result = 1, base = x;
  for (; y > 0; y /= 2, base *= base)
    if (y % 2)
      result *= base;
  return result;
}

static uint64_t bitsOfNumber(Attribute number) {
  if (auto integer = dyn_cast<IntegerAttr>(number))
    return integer.getValue().getZExtValue();
  return cast<FloatAttr>(number).getValue().bitcastToAPInt().getZExtValue();
}

static void constant(Run &, Activation &activation, const Step &step) {
  Attribute value = cast<arith::ConstantOp>(step.op).getValue();
  Bits &result = activation.values[step.results[0]];
  result.clear();
  if (auto lanes = dyn_cast<DenseElementsAttr>(value))
    for (Attribute each : lanes.getValues<Attribute>())
      result.push_back(bitsOfNumber(each));
  else
    result.push_back(bitsOfNumber(value));
}

static void addArithmetic(Actions &actions) {
  actions["arith.addi"] = ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return x + y; });
  actions["arith.subi"] = ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return x - y; });
  actions["arith.muli"] = ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return x * y; });
  actions["arith.andi"] = ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return x & y; });
  actions["arith.ori"] = ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return x | y; });
  actions["arith.xori"] = ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return x ^ y; });
  actions["arith.maxui"] =
      ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return std::max(x, y); });
  actions["arith.minui"] =
      ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return std::min(x, y); });
  actions["arith.divui"] =
      ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return y ? x / y : 0; });
  actions["arith.remui"] =
      ofUnsigned([](uint64_t x, uint64_t y, unsigned) { return y ? x % y : 0; });
  actions["arith.maxsi"] = ofSigned([](int64_t x, int64_t y) { return std::max(x, y); });
  actions["arith.minsi"] = ofSigned([](int64_t x, int64_t y) { return std::min(x, y); });
  actions["arith.divsi"] = ofSigned(divided);
  actions["arith.remsi"] = ofSigned(remainderOf);
  actions["arith.floordivsi"] = ofSigned(dividedDown);
  actions["arith.ceildivsi"] = ofSigned(dividedUp);
  actions["math.ipowi"] = ofSigned(powerOf);
}

static void addBits(Actions &actions) {
  actions["arith.shli"] =
      ofUnsigned([](uint64_t x, uint64_t y, unsigned width) { return y >= width ? 0 : x << y; });
  actions["arith.shrui"] =
      ofUnsigned([](uint64_t x, uint64_t y, unsigned width) { return y >= width ? 0 : x >> y; });
  actions["arith.shrsi"] = ofUnsigned([](uint64_t x, uint64_t y, unsigned width) {
    return uint64_t(withSign(x, width) >> std::min<uint64_t>(y, 63));
  });
  actions["math.absi"] = eachOf(
      [](uint64_t x, unsigned width) { return withSign(x, width) < 0 ? uint64_t(0) - x : x; });
  actions["math.ctpop"] = eachOf([](uint64_t x, unsigned) { return uint64_t(llvm::popcount(x)); });
  actions["math.ctlz"] = eachOf(
      [](uint64_t x, unsigned width) { return uint64_t(llvm::countl_zero(x)) - (64 - width); });
  actions["math.cttz"] = eachOf(
      [](uint64_t x, unsigned width) { return std::min<uint64_t>(llvm::countr_zero(x), width); });
}

void addIntegers(Actions &actions) {
  addArithmetic(actions);
  addBits(actions);
  auto same = eachOf([](uint64_t x, unsigned) { return x; });
  auto extended = eachOf([](uint64_t x, unsigned width) { return uint64_t(withSign(x, width)); });
  for (const char *name : {"arith.extui", "arith.index_castui", "arith.trunci", "arith.bitcast"})
    actions[name] = same;
  for (const char *name : {"arith.extsi", "arith.index_cast"})
    actions[name] = extended;
  actions["arith.cmpi"] = laneByLane([](const Step &step, auto x) {
    APInt a(step.width, x(0)), b(step.width, x(1));
    return arith::applyCmpPredicate(cast<arith::CmpIOp>(step.op).getPredicate(), a, b);
  });
  actions["arith.select"] = laneByLane([](const Step &, auto x) { return x(0) ? x(1) : x(2); });
  actions["arith.constant"] = constant;
}

} // namespace heddle::interpreter
