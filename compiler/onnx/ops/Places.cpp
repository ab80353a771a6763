// Places: NonZero, Compress and Unique, whose results are as long as the run finds.

#include "compiler/onnx/ops/Places.h"

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static Value countBefore(Emitter &e, Value flags) {
  return e.infer<CumsumOp>(
      flags, {e.integer("axis", 0), e.flag("exclusive", true), e.flag("reverse", false)});
}

static Value scatter(Emitter &e, Value x, Value indices, Value updates) {
  return e.infer<ScatterElementsOp>({x, indices, updates},
                                    {e.integer("axis", 0), e.text("reduction", "none")});
}

Value placesOf(Emitter &e, Value flags) {
  Dim total = dimsOf(flags)[0];
  Value numbers = e.cast(flags, e.i64());
  Dim found = e.bindSizes(e.reduce<ReduceSumOp>(numbers, {0}, false), "found")[0];
  // The i-th that is found goes to place i; all others go to a place behind the last.
  Value target = e.select(flags, countBefore(e, numbers), e.size(found));
  Value places = scatter(e, e.full(found + Dim(1), e.i64(), 0), target, countUp(e, total, e.i64()));
  return e.sliceAlong(places, 0, Dim(0), found);
}

SmallVector<Value> digitsOf(Emitter &e, Value places, ArrayRef<Dim> dims) {
  SmallVector<Value> digits(dims.size());
  Dim inner(1);
  auto divisor = [&](const Dim &size) { return e.size(Dim::max(size, Dim(1))); };
  for (size_t i = dims.size(); i-- > 0;) {
    Value digit = inner.isConstant(1) ? places : e.div(places, divisor(inner));
    digits[i] = i == 0 ? digit : e.binary<ModOp>(digit, divisor(dims[i]));
    inner = inner * dims[i];
  }
  return digits;
}

static void importNonZero(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  Value flat = n.reshape(x, elementCount(dims));
  if (!elementOf(x).isInteger(1))
    flat = n.compare<NotEqualOp>(flat, n.scalar(elementOf(x), 0));
  Value places = placesOf(n, flat);
  SmallVector<Value> rows = digitsOf(n, places, dims);
  for (Value &row : rows)
    row = n.unsqueeze(row, {0});
  n.set(rows.empty() ? n.full({Dim(0), dimsOf(places)[0]}, n.i64(), 0) : n.concat(rows, 0));
}

static void importCompress(Node &n) {
  Value x = n.in(0), condition = n.in(1);
  int64_t axis = 0;
  if (n.hasAttribute("axis"))
    axis = n.axis(n.getInt("axis", 0), rankOf(x));
  else
    x = n.reshape(x, elementCount(dimsOf(x)));
  if (!elementOf(condition).isInteger(1) || rankOf(condition) != 1)
    refuse("the condition must be a vector of bool");
  n.set(n.gather(x, placesOf(n, condition), axis));
}

/// The order that sorts a vector, smallest first; equal elements stay in order: i64[n].
static Value orderOf(Emitter &e, Value x) {
  OperationState state(e.location, TopkOp::getOperationName(), x,
                       {x.getType(), e.tensor(dimsOf(x), e.i64())},
                       {e.integer("axis", 0), e.flag("largest", false)});
  return e.emit(state)->getResult(1);
}

/// i64[n, n]: the number of the first column in which rows i and j of x [n, m] differ; m if none
/// does.
static Value firstDifference(Emitter &e, Value x) {
  DimVector dims = dimsOf(x);
  Value rows = e.unsqueeze(x, {1}), others = e.unsqueeze(x, {0});
  Value differ = e.compare<NotEqualOp>(rows, others);
  Value column = countUp(e, dims[1], e.i64());
  return e.reduce<ReduceMinOp>(e.select(differ, column, e.size(dims[1])), {2}, false);
}

/// As orderOf, for the rows of x [n, m] in the order of their first difference. Compares all pairs.
static Value orderOfRows(Emitter &e, Value x) {
  // A last column in which none differ, so that rows of nothing have a column too.
  x = e.pad(x, e.scalar(elementOf(x), 0), {Dim(0), Dim(0)}, {Dim(0), Dim(1)});
  DimVector dims = dimsOf(x);
  DimVector square = {dims[0], dims[0]};
  Value first = firstDifference(e, x), width = e.size(dims[1]);
  Value column = e.binary<MinOp>(first, e.size(dims[1] - Dim(1)));
  Value other = e.infer<GatherElementsOp>({x, e.transpose(column, {1, 0})}, {e.integer("axis", 1)});
  Value own = e.infer<GatherElementsOp>({x, column}, {e.integer("axis", 1)});
  // Row j comes before row i: it is smaller where they differ, or equal and earlier.
  Value isSmaller = e.compare<LessOp>(e.transpose(other, {1, 0}), own);
  Value isEarlier = e.compare<LessOp>(e.iota(square, 1, e.i64()), e.iota(square, 0, e.i64()));
  Value isEqual = e.compare<EqualOp>(first, width);
  Value isBefore = e.select(isEqual, isEarlier, isSmaller);
  Value rank = e.reduce<ReduceSumOp>(e.cast(isBefore, e.i64()), {1}, false);
  return scatter(e, e.full(dims[0], e.i64(), 0), rank, countUp(e, dims[0], e.i64()));
}

static void importUnique(Node &n) {
  Value x = n.in(0), rows;
  bool isFlat = !n.hasAttribute("axis");
  int64_t axis = isFlat ? 0 : n.axis(n.getInt("axis", 0), rankOf(x));
  if (isFlat)
    x = n.reshape(x, elementCount(dimsOf(x)));
  Dim count = dimsOf(x)[axis];
  if (!isFlat) {
    Ints order = {axis};
    for (int64_t i = 0; i < rankOf(x); ++i)
      if (i != axis)
        order.push_back(i);
    DimVector moved = dimsOf(n.transpose(x, order));
    Dim width = elementCount(ArrayRef<Dim>(moved).drop_front());
    rows = n.reshape(n.transpose(x, order), {count, width});
  }
  Value order = isFlat ? orderOf(n, x) : orderOfRows(n, rows);
  Value place = countUp(n, count, n.i64()), zero = n.integerScalar(n.i64(), 0);
  Value before = n.gather(order, n.max(n.add(place, -1), 0), 0);
  Value differs;
  if (isFlat) {
    differs = n.compare<NotEqualOp>(n.gather(x, order, 0), n.gather(x, before, 0));
  } else {
    Value any =
        n.cast(n.compare<NotEqualOp>(n.gather(rows, order, 0), n.gather(rows, before, 0)), n.i32());
    differs = n.cast(n.min(n.reduce<ReduceSumOp>(any, {1}, false), 1), n.i1());
  }
  Value isNew = n.binary<OrOp>(n.compare<EqualOp>(place, zero), differs);
  Value starts = placesOf(n, isNew); // in sorted order
  Dim found = dimsOf(starts)[0];
  Value first = n.gather(order, starts, 0);
  Value bounds = n.concat({starts, n.reshape(n.size(count), {Dim(1)})}, 0);
  Value ends = n.sliceAlong(bounds, 0, Dim(1), found);
  Value counts = n.sub(ends, starts);
  Value flags = n.cast(isNew, n.i64());
  Value group = n.add(n.add(countBefore(n, flags), flags), -1);
  Value inverse = scatter(n, n.full(count, n.i64(), 0), order, group);
  if (!n.getInt("sorted", 1)) {
    Value byFirst = orderOf(n, first);
    Value rank = scatter(n, n.full(found, n.i64(), 0), byFirst, countUp(n, found, n.i64()));
    inverse = n.gather(rank, inverse, 0);
    first = n.gather(first, byFirst, 0);
    counts = n.gather(counts, byFirst, 0);
  }
  n.set(0, n.gather(x, first, axis));
  Value others[] = {first, inverse, counts};
  for (size_t i = 0; i < 3; ++i)
    if (n.wants(i + 1))
      n.set(i + 1, others[i]);
}

OpRows placeRows() {
  static const OpRow rows[] = {
      {"NonZero", "", 9, 27, importNonZero},
      {"Compress", "", 9, 27, importCompress},
      {"Unique", "", 11, 27, importUnique},
  };
  return rows;
}

} // namespace heddle::onnx
