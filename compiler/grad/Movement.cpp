// Movement: derivatives of ops that move elements: moved adjoints go back, repeated ones are
// summed.

#include "compiler/grad/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

static void reshapeRule(Flow &f) { f.give(0, f.reshape(f.dy(), dimsOf(f.x()))); }
static void broadcastRule(Flow &f) { f.give(0, f.sumTo(f.dy(), dimsOf(f.x()))); }

static void transposeRule(Flow &f) {
  f.give(0, f.transpose(f.dy(), graph::inverse(f.as<TransposeOp>().getPermutation())));
}

static void sliceRule(Flow &f) {
  auto op = f.as<SliceOp>();
  f.give(0, f.unslice(f.dy(), dimsOf(op.getStarts()), op.getSteps(), dimsOf(f.x())));
}

/// Finds the origin of each element by slicing their numbers alike; none comes twice.
static void dynamicSliceRule(Flow &f) {
  auto op = f.as<DynamicSliceOp>();
  DimVector dims = dimsOf(f.x()), sizes = dimsOf(f.dy()), fresh = sizes;
  for (int64_t axis : op.getAxes())
    fresh[axis] = freshSymbol(f.builder.getInsertionBlock()->getParentOp(), "slice");
  Value places = f.typed<DynamicSliceOp>(fresh, f.builder.getI64Type(), f.numbering(dims),
                                         op.getStarts(), op.getEnds(), op.getSteps(), op.getAxes());
  Dim count = elementCount(sizes);
  Value flat =
      f.ungather(f.reshape(f.dy(), count), f.reshape(places, count), 0, elementCount(dims));
  f.give(0, f.reshape(flat, dims));
}

static void concatRule(Flow &f) {
  int64_t axis = f.as<ConcatOp>().getAxis(), rank = rankOf(f.y());
  Dim start(0);
  for (unsigned i = 0; i < f.op->getNumOperands(); ++i) {
    DimVector starts(rank, Dim(0)), sizes = dimsOf(f.dy());
    starts[axis] = start;
    sizes[axis] = dimsOf(f.x(i))[axis];
    start = start + sizes[axis];
    if (f.wants(i))
      f.give(i, f.slice(f.dy(), starts, sizes, Ints(rank, 1)));
  }
}

/// An axis after the other: padding its numbers alike says which element each copy is of.
static Value unpadCopies(Flow &f, PadOp op) {
  Value x = f.dy();
  DimVector low = dimsOf(op.getLow()), high = dimsOf(op.getHigh()), from = dimsOf(f.x());
  Value none = f.scalar(f.builder.getI64Type(), 0);
  for (size_t axis = 0; axis < low.size(); ++axis) {
    if (low[axis].isConstant(0) && high[axis].isConstant(0))
      continue;
    DimVector to = dimsOf(x);
    to[axis] = from[axis];
    Value places = f.make<PadOp>(f.iota(from[axis], 0), none, attributeOf(f, low[axis]),
                                 attributeOf(f, high[axis]), op.getMode());
    x = f.ungather(x, places, axis, to);
  }
  return x;
}

static void padRule(Flow &f) {
  auto op = f.as<PadOp>();
  if (op.getMode() != "constant") {
    if (f.wants(0))
      f.give(0, unpadCopies(f, op));
    return;
  }
  DimVector low = dimsOf(op.getLow()), high = dimsOf(op.getHigh()), less(low.size()),
            lessHigh(low.size());
  for (size_t i = 0; i < low.size(); ++i) {
    less[i] = Dim(0) - low[i];
    lessHigh[i] = Dim(0) - high[i];
  }
  if (f.wants(0))
    f.give(0, f.pad(f.dy(), less, lessHigh));
  if (!f.wants(1))
    return;
  Type element = elementOf(f.dy());
  Value isPadding = f.make<PadOp>(f.zeros(f.x()), f.scalar(element, 1), op.getLowAttr(),
                                  op.getHighAttr(), op.getModeAttr());
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(f.y())));
  f.give(1, f.reshape(f.sum(f.mul(f.dy(), isPadding), axes), dimsOf(f.x(1))));
}

static void reverseRule(Flow &f) {
  auto op = f.as<ReverseSequenceOp>();
  f.give(0,
         f.make<ReverseSequenceOp>(f.dy(), op.getLengths(), op.getTimeAxis(), op.getBatchAxis()));
}

/// Each axis has a matrix of weights, which resizing the unit matrix along its rows gives.
static void resizeRule(Flow &f) {
  auto op = f.as<ResizeOp>();
  Value dx = f.dy();
  DimVector from = dimsOf(f.x()), to = dimsOf(dx);
  int64_t rank = from.size();
  for (int64_t axis = 0; axis < rank; ++axis) {
    double scale = op.getScales()[axis];
    if (from[axis] == to[axis] && (scale == 0 || scale == 1))
      continue;
    DimVector square{from[axis], from[axis]}, wide{from[axis], to[axis]};
    Value unit = f.cast(f.compare<EqualOp>(f.iota(square, 0), f.iota(square, 1)), elementOf(dx));
    Value weights = f.typed<ResizeOp>(
        wide, elementOf(dx), unit, ArrayRef<double>{1, scale}, op.getMode(), op.getCoordinates(),
        op.getNearest(), op.getCubicCoefficient(), op.getExcludeOutside(), llvm::APFloat(0.0));
    Ints last = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    std::swap(last[axis], last[rank - 1]);
    Value rows = f.transpose(dx, last);
    DimVector dims = dimsOf(rows);
    Dim count = elementCount(ArrayRef<Dim>(dims).drop_back());
    rows = f.matmul(f.reshape(rows, {count, to[axis]}), f.transpose(weights, {1, 0}));
    dims.back() = from[axis];
    dx = f.transpose(f.reshape(rows, dims), last);
  }
  f.give(0, dx);
}

Rows movementRules() {
  static const Row rows[] = {
      {ReshapeOp::getOperationName(), reshapeRule},
      {DynamicReshapeOp::getOperationName(), reshapeRule},
      {BroadcastOp::getOperationName(), broadcastRule},
      {DynamicBroadcastOp::getOperationName(), broadcastRule},
      {TransposeOp::getOperationName(), transposeRule},
      {SliceOp::getOperationName(), sliceRule},
      {DynamicSliceOp::getOperationName(), dynamicSliceRule},
      {ConcatOp::getOperationName(), concatRule},
      {PadOp::getOperationName(), padRule},
      {ResizeOp::getOperationName(), resizeRule},
      {ReverseSequenceOp::getOperationName(), reverseRule},
  };
  return rows;
}

} // namespace heddle::grad
