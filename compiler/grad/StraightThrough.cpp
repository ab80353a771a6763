// StraightThrough: the slope of rounding to integers and back, as quantisation does it.

#include "compiler/grad/StraightThrough.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

static bool isOfIntegers(Value x) { return isa<IntegerType>(elementOf(x)); }

std::optional<Rounding> roundingBefore(Operation *op) {
  auto back = dyn_cast<CastOp>(op);
  if (!back || !isa<FloatType>(elementOf(back.getResult())) || !isOfIntegers(back.getX()))
    return std::nullopt;
  Value x = back.getX();
  if (auto centred = x.getDefiningOp<SubOp>()) // less the zero point
    x = centred.getX();
  auto cast = x.getDefiningOp<CastOp>();
  while (cast && isOfIntegers(cast.getX()))
    cast = cast.getX().getDefiningOp<CastOp>();
  auto most = cast ? cast.getX().getDefiningOp<MinOp>() : MinOp();
  auto least = most ? most.getX().getDefiningOp<MaxOp>() : MaxOp();
  if (!least)
    return std::nullopt;
  Value rounded = least.getX();
  if (auto shifted = rounded.getDefiningOp<AddOp>()) // and the zero point
    rounded = shifted.getX();
  auto round = rounded.getDefiningOp<RoundOp>();
  if (!round)
    return std::nullopt;
  return Rounding{round.getX(), least.getX(), least.getY(), most.getY()};
}

Value straightThrough(Maker &m, const Rounding &rounding, Value dy) {
  Value isMore = m.compare<GreaterEqualOp>(rounding.shifted, rounding.least);
  Value isLess = m.compare<LessEqualOp>(rounding.shifted, rounding.most);
  Value isWithin = m.make<AndOp>(isMore.getType(), isMore, isLess);
  return m.select(isWithin, dy, m.zeros(dy));
}

} // namespace heddle::grad
