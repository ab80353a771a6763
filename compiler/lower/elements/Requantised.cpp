// Requantised: floats that become integers of 8 bits, and those that become floats again.
//
//   cast<f32>(cast<i32>(cast<i8>(min(max(x + z, least), most))) - z)
//     = min(max(x, least - z), most - z), where x is whole
//
// A pair of quantisation and dequantisation inside a kernel costs nothing but its bounds then, and
// of those only what the next quantisation's bounds do not imply.
//
//   min(max(round(x / s) + z, least), most)
//     = round(min(max(x, s (least - z)), s (most - z)) / s) + z, where the bounds are whole
//
// since rounding is monotone and a bound's quotient rounds to the bound. So the conversion rounds
// where the machine has one that does, and a quotient is known to be small.

#include "compiler/graph/Constants.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/elements/Elements.h"

#include <cmath>

using namespace mlir;

namespace heddle::lower {

static void loseZeroSign(Value extreme) {
  Operation *made = extreme.getDefiningOp();
  if (isa_and_nonnull<arith::MaximumFOp, arith::MinimumFOp>(made))
    made->setAttr("fastmath",
                  arith::FastMathFlagsAttr::get(made->getContext(), arith::FastMathFlags::nsz));
}

/// Whether elements are whole: rounded, maybe with a whole number added.
static bool isWhole(Value value) {
  auto isWholeNumber = [](Value number) {
    auto known = graph::splatOf(number);
    return known && *known == std::floor(*known);
  };
  if (auto add = value.getDefiningOp<graph::AddOp>())
    return isWholeNumber(add.getY()) && isWhole(add.getX());
  return value.getDefiningOp<graph::RoundOp>() != nullptr;
}

/// cast(i32 of 8 bits of x - zero) to floats: x and zero, where x is whole and within the 8 bits.
/// Integers of a NaN may be any number, so it may stay.
static std::optional<std::pair<Value, double>> requantised(graph::CastOp op) {
  Value integer = op.getX();
  double zero = 0;
  if (auto sub = integer.getDefiningOp<graph::SubOp>()) {
    constexpr double kExact = 1 << 20; // differences of numbers below it are exact in f32
    auto known = graph::splatOf(sub.getY());
    if (!known || std::abs(*known) > kExact)
      return std::nullopt;
    zero = *known;
    integer = sub.getX();
  }
  auto wide = integer.getDefiningOp<graph::CastOp>();
  if (wide && graph::storageOf(integer).isSignlessInteger(32))
    integer = wide.getX();
  auto narrow = integer.getDefiningOp<graph::CastOp>();
  auto top = narrow ? narrow.getX().getDefiningOp<graph::MinOp>() : nullptr;
  auto bottom = top ? top.getX().getDefiningOp<graph::MaxOp>() : nullptr;
  if (!bottom || !graph::storageOf(op.getResult()).isF32() ||
      !graph::storageOf(top.getResult()).isF32() ||
      !graph::storageOf(narrow.getResult()).isInteger(8) || !isWhole(bottom.getX()))
    return std::nullopt;
  bool isUnsigned = graph::storageOf(narrow.getResult()).isUnsignedInteger();
  auto most = graph::splatOf(top.getY()), least = graph::splatOf(bottom.getY());
  if (!most || !least || *most > (isUnsigned ? 255 : 127) || *least < (isUnsigned ? 0 : -128))
    return std::nullopt;
  return std::pair(top.getResult(), zero);
}

/// The op that alone reads `value`, where it is an Op whose other operand is one number.
template <typename Op> static Op soleReader(Value value, double &number) {
  auto reader = value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
  auto known = reader && reader.getX() == value ? graph::splatOf(reader.getY()) : std::nullopt;
  number = known.value_or(0);
  return known ? reader : Op();
}

namespace {

struct Quantised {
  graph::RoundOp round;
  graph::MaxOp bottom;
  graph::MinOp top;
  llvm::SmallVector<Value> between; // results of these and of the sum with a zero point
  double zero, least, most;         // bounds before it is added
};

/// min(max(round(x * scale) + zero, least), most) is all that becomes of x.
struct NextBounds {
  double scale, zero = 0, least, most;
  float at(double x) const {
    float scaled = static_cast<float>(x) * static_cast<float>(scale);
    return std::nearbyint(scaled) + static_cast<float>(zero);
  }
};

} // namespace

static std::optional<NextBounds> nextBounds(Value x) {
  NextBounds next;
  auto product = soleReader<graph::MulOp>(x, next.scale);
  if (!product || !(next.scale > 0) || !product.getResult().hasOneUse())
    return std::nullopt;
  auto round = dyn_cast<graph::RoundOp>(*product.getResult().user_begin());
  if (!round)
    return std::nullopt;
  Value whole = round.getResult();
  if (auto sum = soleReader<graph::AddOp>(whole, next.zero))
    whole = sum.getResult();
  auto bottom = soleReader<graph::MaxOp>(whole, next.least);
  auto top = bottom ? soleReader<graph::MinOp>(bottom.getResult(), next.most) : nullptr;
  return top ? std::optional<NextBounds>(next) : std::nullopt;
}

/// `op`, a maximum or a minimum, of x and another bound than its own; zeros may lose their signs.
Value Elements::bounded(Operation *op, Value x, double bound) {
  Value number = code().constantOf(getElementTypeOrSelf(x.getType()), bound);
  x = emitElementwise(code(), op, {x, Code::isVector(x) ? code().spread(number) : number});
  loseZeroSign(x);
  return x;
}

/// The result of `cast` on `clamped`; null if that is spelt in another way, or if the integers are
/// needed, too.
Value Elements::clampedAt(graph::CastOp cast, Value clamped, double zero, ArrayRef<Index> place) {
  auto top = clamped.getDefiningOp<graph::MinOp>();
  auto bottom = top.getX().getDefiningOp<graph::MaxOp>();
  auto sum = bottom.getX().getDefiningOp<graph::AddOp>();
  bool isReadOnce = clamped.hasOneUse() && (*clamped.user_begin())->hasOneUse();
  bool isKnown =
      sources.contains(clamped) || sources.contains(bottom) || sources.contains(bottom.getX());
  if (isKnown || !isReadOnce || (sum ? graph::splatOf(sum.getY()) != zero : zero != 0))
    return {};
  Value x = at(sum ? sum.getX() : bottom.getX(), place);
  double least = *graph::splatOf(bottom.getY()) - zero, most = *graph::splatOf(top.getY()) - zero;
  auto next = nextBounds(cast.getResult());
  if (!next || next->at(least) > next->least)
    x = bounded(bottom, x, least);
  if (!next || next->at(most) < next->most)
    x = bounded(top, x, most);
  return x;
}

/// x and its bounds, of min(max(round(x) + zero, least), most) in f32 that becomes an integer of 8
/// bits, and of nothing else.
static std::optional<Quantised> quantisedBy(Operation *op) {
  auto cast = dyn_cast<graph::CastOp>(op);
  if (!cast || !graph::storageOf(cast.getResult()).isInteger(8) ||
      llvm::any_of(cast->getUsers(), [](Operation *user) { return isa<graph::CastOp>(user); }))
    return std::nullopt;
  Quantised found;
  found.top = cast.getX().getDefiningOp<graph::MinOp>();
  found.bottom = found.top ? found.top.getX().getDefiningOp<graph::MaxOp>() : nullptr;
  if (!found.bottom || !graph::storageOf(cast.getX()).isF32())
    return std::nullopt;
  Value whole = found.bottom.getX();
  double zero = 0;
  if (auto sum = whole.getDefiningOp<graph::AddOp>()) {
    auto number = graph::splatOf(sum.getY());
    if (!number)
      return std::nullopt;
    zero = *number;
    whole = sum.getX();
    found.between.push_back(sum.getResult());
  }
  found.round = whole.getDefiningOp<graph::RoundOp>();
  auto most = graph::splatOf(found.top.getY()), least = graph::splatOf(found.bottom.getY());
  constexpr double kMost = 256; // of bounds of 8 bits, and of zero points
  auto isBound = [&](double number) {
    return number == std::floor(number) && std::abs(number) <= kMost;
  };
  if (!found.round || !most || !least || !isBound(*most) || !isBound(*least) || !isBound(zero))
    return std::nullopt;
  found.zero = zero;
  found.least = *least - zero;
  found.most = *most - zero;
  found.between.append({found.top, found.bottom, found.round});
  bool areReadOnce = llvm::all_of(found.between, [](Value value) { return value.hasOneUse(); });
  return areReadOnce ? std::optional(found) : std::nullopt;
}

/// An integer of 8 bits, bounded before it is rounded; null if `op` does not make one.
Value Elements::quantised(Operation *op, ArrayRef<Index> place) {
  auto found = quantisedBy(op);
  if (!found || llvm::any_of(found->between, [&](Value value) {
        return value.getDefiningOp()->getBlock() != group || sources.contains(value);
      }))
    return {};
  constexpr double kLeast = 0x1p-60, kMost = 0x1p60; // steps whose products with bounds are exact
  auto quotient = found->round.getX().getDefiningOp<graph::DivOp>();
  auto step = quotient ? graph::splatOf(quotient.getY()) : std::nullopt;
  if (!step || !(*step >= kLeast && *step <= kMost) || quotient->getBlock() != group ||
      sources.contains(quotient.getResult()) || !quotient->hasOneUse())
    quotient = nullptr;
  double scale = quotient ? *step : 1;
  Value x = at(quotient ? quotient.getX() : found->round.getX(), place);
  x = bounded(found->bottom, x, found->least * scale);
  x = bounded(found->top, x, found->most * scale);
  auto like = [&](double number) {
    Value constant = code().constantOf(getElementTypeOrSelf(x.getType()), number);
    return Code::isVector(x) ? code().spread(constant) : constant;
  };
  if (quotient) {
    auto steps = code().b.create<arith::DivFOp>(code().loc, x, like(scale));
    steps->setAttr(program::kSteps, code().b.getUnitAttr());
    x = steps;
  }
  x = emitElementwise(code(), found->round, {x});
  if (found->zero != 0)
    x = code().b.create<arith::AddFOp>(code().loc, x, like(found->zero));
  return emitElementwise(code(), op, {x});
}

/// The result of a cast that makes a float again of what was one; else null.
Value Elements::keptFloat(Operation *op, ArrayRef<Index> place) {
  auto cast = dyn_cast<graph::CastOp>(op);
  auto kept = cast ? requantised(cast) : std::nullopt;
  if (!kept || kept->first.getDefiningOp()->getBlock() != group)
    return {};
  // Values that a schedule has computed already are not computed again from their operands.
  for (Value value = cast.getX(); value != kept->first;
       value = value.getDefiningOp()->getOperand(0))
    if (sources.contains(value))
      return {};
  if (Value x = clampedAt(cast, kept->first, kept->second, place))
    return x;
  Value x = at(kept->first, place);
  if (kept->second == 0)
    return x;
  Value zero = code().constantOf(getElementTypeOrSelf(x.getType()), kept->second);
  return code().b.create<arith::SubFOp>(code().loc, x,
                                        Code::isVector(x) ? code().spread(zero) : zero);
}

/// Whether all that becomes of a float's sign, where it is 0, is that of an integer.
static bool endsWhole(Value value, int depth = 0) {
  constexpr int kMost = 6; // ops
  return depth < kMost && !value.use_empty() &&
         llvm::all_of(
             value.getUsers(),
             [&](Operation *op) {
               if (auto cast = dyn_cast<graph::CastOp>(op))
                 return isa<IntegerType>(graph::storageOf(cast.getResult()));
               return isa<graph::MaxOp, graph::MinOp, graph::RoundOp>(op) &&
                      endsWhole(op->getResult(0), depth + 1);
             });
}

/// Bounds of numbers that become integers do not tell -0 from 0, which costs an instruction.
void Elements::ignoreZeroSign(Operation *op, Value result) {
  if (!isa<graph::MaxOp, graph::MinOp>(op))
    return;
  Value x = op->getOperand(0);
  if (auto bottom = x.getDefiningOp<graph::MaxOp>())
    x = bottom.getX();
  if (isWhole(x) || endsWhole(op->getResult(0)))
    loseZeroSign(result);
}

} // namespace heddle::lower
