// Suppression: NonMaxSuppression as a loop that takes the best box of every batch entry and class
// at once, and drops those that it covers.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Places.h"
#include "compiler/onnx/ops/Walk.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
/// Corners and areas of boxes, one tensor a number.
struct Boxes {
  Value low[2], high[2], area;
};
} // namespace

static Value areaOf(Emitter &e, const Boxes &boxes) {
  return e.mul(e.sub(boxes.high[0], boxes.low[0]), e.sub(boxes.high[1], boxes.low[1]));
}

/// From [batch, n, 4] to numbers of [batch, 1, n].
static Boxes readBoxes(Node &n, Value boxes) {
  DimVector dims = dimsOf(boxes);
  auto column = [&](int64_t i) {
    return n.reshape(n.sliceAlong(boxes, 2, Dim(i), Dim(1)), {dims[0], Dim(1), dims[1]});
  };
  Boxes result;
  for (int64_t d = 0; d < 2; ++d) {
    Value a = column(d), b = column(d + 2);
    if (n.getInt("center_point_box", 0)) { // centre and extent
      Value half = n.div(b, 2);
      b = n.add(a, half);
      a = n.sub(a, half);
    }
    result.low[d] = n.binary<MinOp>(a, b);
    result.high[d] = n.binary<MaxOp>(a, b);
  }
  result.area = areaOf(n, result);
  return result;
}

/// i1[batch, classes, n]: which boxes share more than `threshold` of their union with the chosen
/// one, whose numbers are [batch, classes, 1].
static Value coveredBy(Emitter &e, const Boxes &boxes, const Boxes &chosen, Value threshold) {
  Boxes shared;
  Value zero = e.scalar(elementOf(boxes.area), 0);
  for (int64_t d = 0; d < 2; ++d) {
    shared.low[d] = e.binary<MaxOp>(boxes.low[d], chosen.low[d]);
    shared.high[d] = e.binary<MaxOp>(shared.low[d], e.binary<MinOp>(boxes.high[d], chosen.high[d]));
  }
  Value common = areaOf(e, shared);
  Value all = e.sub(e.add(boxes.area, chosen.area), common);
  Value isReal =
      e.binary<AndOp>(e.compare<GreaterOp>(common, zero), e.compare<GreaterOp>(all, zero));
  return e.binary<AndOp>(isReal, e.compare<GreaterOp>(e.div(common, all), threshold));
}

/// The numbers of the boxes where `isChosen`, [batch, classes, n], which is one a row or none.
static Boxes pickBoxes(Emitter &e, const Boxes &boxes, Value isChosen) {
  Value zero = e.scalar(elementOf(boxes.area), 0);
  auto pick = [&](Value number) {
    return e.reduce<ReduceSumOp>(e.select(isChosen, number, zero), {2});
  };
  Boxes result;
  for (int64_t d = 0; d < 2; ++d) {
    result.low[d] = pick(boxes.low[d]);
    result.high[d] = pick(boxes.high[d]);
  }
  result.area = pick(boxes.area);
  return result;
}

static void importNonMaxSuppression(Node &n) {
  Value scores = n.in(1);
  if (rankOf(n.in(0)) != 3 || rankOf(scores) != 3 || dimsOf(n.in(0))[2].constant().value_or(4) != 4)
    refuse("the boxes must be [batch, n, 4] and the scores [batch, classes, n], but are " +
           textOf(dimsOf(n.in(0))) + " and " + textOf(dimsOf(scores)));
  DimVector dims = dimsOf(scores);
  Type element = elementOf(scores);
  Value zero = n.scalar(element, 0), none = n.integerScalar(n.i64(), -1);
  auto scalarOf = [&](size_t i, Value otherwise) {
    return n.has(i) ? n.reshape(n.in(i), {}) : otherwise;
  };
  Value wanted = n.max(n.cast(scalarOf(2, n.integerScalar(n.i64(), 0)), n.i64()), 0);
  wanted = n.binary<MinOp>(wanted, n.size(dims[2]));
  Dim rounds = n.bindSizes(wanted, "boxes")[0];
  Value threshold = n.cast(scalarOf(3, zero), element);
  Value alive =
      n.has(4) ? n.compare<GreaterOp>(scores, scalarOf(4, zero)) : n.full(dims, n.i1(), 1);
  DimVector rows = {dims[0], dims[1], rounds};
  DimVector corners = {dims[0], dims[2], Dim(4)};
  Boxes boxes = readBoxes(n, n.reshape(n.in(0), corners));
  Value lowest = n.scalar(element, -INFINITY);
  SmallVector<Value> states = {alive, n.broadcast(none, rows)};
  // From the boxes that are left: [batch, classes, n], and those taken, [batch, classes, rounds].
  auto round = [&](Value iteration, ArrayRef<Value> states) -> SmallVector<Value> {
    Value left = states[0],
          isLeft = n.cast(n.reduce<ReduceMaxOp>(n.cast(left, n.i32()), {2}), n.i1());
    Value best =
        n.infer<ArgMaxOp>(n.select(left, scores, lowest),
                          {n.integer("axis", 2), n.flag("keep_dims", true), n.flag("last", false)});
    Value isBest = n.compare<EqualOp>(n.iota(dims, 2, n.i64()), best);
    Value isChosen = n.binary<AndOp>(isBest, isLeft);
    Value dropped =
        n.binary<OrOp>(isChosen, coveredBy(n, boxes, pickBoxes(n, boxes, isChosen), threshold));
    Value isNow = n.compare<EqualOp>(n.iota(rows, 2, n.i64()), iteration);
    Value taken = n.select(n.binary<AndOp>(isNow, isLeft), best, states[1]);
    return {n.binary<AndOp>(left, n.unary<NotOp>(dropped)), taken};
  };
  Value taken = repeat(n, n.size(rounds), states, round)[1];
  Value flat = n.reshape(taken, elementCount(rows));
  Value places = placesOf(n, n.compare<NotEqualOp>(flat, none));
  SmallVector<Value> columns = digitsOf(n, places, rows);
  columns[2] = n.gather(flat, places, 0);
  for (Value &column : columns)
    column = n.unsqueeze(column, {1});
  n.set(n.concat(columns, 1));
}

OpRows suppressionRows() {
  static const OpRow rows[] = {
      {"NonMaxSuppression", "", 10, 27, importNonMaxSuppression},
  };
  return rows;
}

} // namespace heddle::onnx
