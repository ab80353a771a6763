// Requantised: floats that become integers of 8 bits and floats again stay floats.
//
//   cast<f32>(cast<i32>(cast<i8>(min(max(x + z, least), most))) - z)
//     = min(max(x, least - z), most - z), where x is whole
//
// A pair of quantisation and dequantisation inside a kernel costs nothing but its bounds then, and
// of those only what the next quantisation's bounds do not imply.

#include "compiler/graph/Constants.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/elements/Elements.h"

#include <cmath>

using namespace mlir;

namespace heddle::lower {

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
  auto bounded = [&](Operation *op, double number) {
    Value bound = code().constantOf(getElementTypeOrSelf(x.getType()), number);
    x = emitElementwise(code(), op, {x, Code::isVector(x) ? code().spread(bound) : bound});
    ignoreZeroSign(op, x);
  };
  double least = *graph::splatOf(bottom.getY()) - zero, most = *graph::splatOf(top.getY()) - zero;
  auto next = nextBounds(cast.getResult());
  if (!next || next->at(least) > next->least)
    bounded(bottom, least);
  if (!next || next->at(most) < next->most)
    bounded(top, most);
  return x;
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

/// Bounds of whole numbers do not tell -0 from 0, which costs an instruction: integers, which these
/// become, do not either.
void Elements::ignoreZeroSign(Operation *op, Value result) {
  if (!isa<graph::MaxOp, graph::MinOp>(op))
    return;
  Value x = op->getOperand(0);
  if (auto bottom = x.getDefiningOp<graph::MaxOp>())
    x = bottom.getX();
  Operation *made = result.getDefiningOp();
  if (!isWhole(x) || !isa_and_nonnull<arith::MaximumFOp, arith::MinimumFOp>(made))
    return;
  made->setAttr("fastmath",
                arith::FastMathFlagsAttr::get(made->getContext(), arith::FastMathFlags::nsz));
}

} // namespace heddle::lower
