// Routine: derivatives of ops that routines of the runtime compute.

#include "compiler/grad/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

static void cumsumRule(Flow &f) {
  auto op = f.as<CumsumOp>();
  f.give(0, f.make<CumsumOp>(f.dy(), op.getAxis(), op.getExclusive(), !op.getReverse()));
}

static void topkRule(Flow &f) {
  f.give(0, f.make<ScatterElementsOp>(f.zeros(f.x()), f.op->getResult(1), f.dy(),
                                      f.as<TopkOp>().getAxis(), "add"));
}

/// x with `size` elements along an axis: zeros after it, or less of it.
static Value resized(Flow &f, Value x, int64_t axis, const Dim &size) {
  DimVector none(rankOf(x), Dim(0)), high = none;
  high[axis] = size - dimsOf(x)[axis];
  return f.pad(x, none, high);
}

/// 1 / length, as a tensor like x.
static Value shareOf(Flow &f, Value x, const Dim &length) {
  Type i64 = f.builder.getI64Type();
  Value count = f.typed<SizesOp>({}, i64, attributeOf(f, length));
  return f.broadcast(f.div(f.scalar(elementOf(x), 1), f.cast(count, elementOf(x))), dimsOf(x));
}

/// The weights of frequencies that stand for their conjugates, too: 2, but 1 where they are their
/// own.
static Value weightsOf(Flow &f, Value like, int64_t axis, const Dim &length) {
  Type i64 = f.builder.getI64Type();
  Value place = f.iota(dimsOf(like), axis);
  Value count = f.broadcast(f.typed<SizesOp>({}, i64, attributeOf(f, length)), dimsOf(like));
  Value isFirst = f.compare<EqualOp>(place, f.zeros(place));
  Value isMiddle = f.compare<EqualOp>(f.mul(place, 2), count);
  Value isAlone = f.make<OrOp>(isFirst.getType(), isFirst, isMiddle);
  return f.select(isAlone, f.like(like, 1), f.like(like, 2));
}

/// A linear function: its adjoint is a transform the other way.
static void fourierRule(Flow &f) {
  auto op = f.as<FourierOp>();
  int64_t axis = op.getAxis(), last = rankOf(f.x()) - 1;
  Dim length = dimsOf(op.getLength())[0];
  DimsAttr lengths = op.getLength();
  bool isInverse = op.getInverse(), isOnesided = op.getOnesided();
  Value dy = f.dy();
  if (isOnesided && !isInverse)
    dy = resized(f, dy, axis, length);
  DimVector dims = dimsOf(dy);
  dims[axis] = isOnesided && isInverse ? length.floorDiv(Dim(2)) + Dim(1) : length;
  dims[last] = Dim(2);
  Value dx = f.typed<FourierOp>(dims, elementOf(dy), dy, axis, lengths, !isInverse,
                                isOnesided && isInverse);
  Value share = shareOf(f, dx, length);
  dx = isInverse ? f.mul(dx, share) : f.div(dx, share);
  if (isOnesided && isInverse)
    dx = f.mul(dx, weightsOf(f, dx, axis, length));
  // A real x has no imaginary part; of a complex one a one-sided transform takes the real part.
  Dim parts = dimsOf(f.x())[last];
  if (isOnesided && !isInverse)
    dx = resized(f, dx, last, Dim(1));
  f.give(0, resized(f, resized(f, dx, last, parts), axis, dimsOf(f.x())[axis]));
}

Rows routineRules() {
  static const Row rows[] = {
      {CumsumOp::getOperationName(), cumsumRule},   {TopkOp::getOperationName(), topkRule},
      {FourierOp::getOperationName(), fourierRule}, {ForestOp::getOperationName(), nullptr},
      {NonzeroOp::getOperationName(), nullptr},     {UniqueOp::getOperationName(), nullptr},
      {SuppressOp::getOperationName(), nullptr},    {CustomOp::getOperationName(), nullptr},
  };
  return rows;
}

} // namespace heddle::grad
