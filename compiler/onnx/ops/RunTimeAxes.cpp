// RunTimeAxes: which dimensions are chosen, and tensors with these at the end. No model needs this
// to be fast: a transposition by order of the run is a gather with computed indices.

#include "compiler/onnx/ops/RunTimeAxes.h"

#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

RunTimeAxes::RunTimeAxes(Node &n, Value axes, int64_t rank)
    : n(n), rank(rank), count(elementCount(dimsOf(axes))) {
  Value given = n.reshape(n.cast(axes, n.i64()), {count, Dim(1)});
  Value isNegative = n.compare<LessOp>(given, n.integerScalar(n.i64(), 0));
  Value places = n.select(isNegative, n.add(given, rank), given);
  Value above = n.sub(n.integerScalar(n.i64(), rank - 1), places);
  Value room = n.reduce<ReduceMinOp>(n.binary<MinOp>(places, above), {0, 1}, false);
  n.requireNotNegative(room, "an axis is outside of rank " + Twine(rank) + " by %lld");
  hits = n.compare<EqualOp>(places, n.iota({count, Dim(rank)}, 1, n.i64()));
  chosen = n.min(n.reduce<ReduceSumOp>(n.cast(hits, n.i64()), {0}, false), 1);
}

Value RunTimeAxes::spread(Value values, Value otherwise) const {
  Value column = n.reshape(n.cast(values, n.i64()), {count, Dim(1)});
  Value zero = n.integerScalar(n.i64(), 0);
  Value placed = n.reduce<ReduceSumOp>(n.select(hits, column, zero), {0}, false);
  return n.select(n.compare<EqualOp>(chosen, zero), otherwise, placed);
}

void RunTimeAxes::whenEmpty(bool all) {
  Value isEmpty = n.compare<EqualOp>(n.size(count), n.integerScalar(n.i64(), 0));
  chosen = n.select(isEmpty, n.integerScalar(n.i64(), all), chosen);
}

void RunTimeAxes::sort() {
  if (order)
    return;
  DimVector square = {Dim(rank), Dim(rank)};
  Value key = n.add(n.mul(chosen, rank), n.iota(Dim(rank), 0, n.i64()));
  Value isBefore = n.compare<LessOp>(key, n.reshape(key, {Dim(rank), Dim(1)}));
  Value position = n.reduce<ReduceSumOp>(n.cast(isBefore, n.i64()), {1}, false);
  Value isPlace = n.compare<EqualOp>(position, n.iota(square, 0, n.i64()));
  Value number = n.select(isPlace, n.iota(square, 1, n.i64()), n.integerScalar(n.i64(), 0));
  order = n.reduce<ReduceSumOp>(number, {1}, false);
}

Value RunTimeAxes::sortedSizes(Value x) {
  sort();
  return n.gather(n.sizes(dimsOf(x)), order, 0);
}

Value RunTimeAxes::toEnd(Value x) {
  DimVector from = dimsOf(x), strides(rank, Dim(1)), dims = n.bindSizes(sortedSizes(x), "size");
  for (int64_t i = rank - 1; i > 0; --i)
    strides[i - 1] = strides[i] * from[i];
  Value steps = n.gather(n.sizes(strides), order, 0);
  Value index = n.full(dims, n.i64(), 0);
  for (int64_t i = 0; i < rank; ++i)
    index = n.add(index, n.mul(n.iota(dims, i, n.i64()), elementAt(n, steps, i)));
  return n.gather(n.reshape(x, elementCount(from)), index, 0);
}

} // namespace heddle::onnx
