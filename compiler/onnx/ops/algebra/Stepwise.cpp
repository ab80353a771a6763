// Stepwise: ops whose result follows step by step: running products, determinants, and Scan of
// opset 8, which walks along each entry of a batch.

#include "compiler/onnx/ops/algebra/Stepwise.h"
#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Walk.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static void importCumProd(Node &n) {
  Value x = n.in(0);
  bool exclusive = n.getInt("exclusive", 0), reverse = n.getInt("reverse", 0);
  n.set(onAxis(n, n.in(1), rankOf(x), [&](int64_t axis) {
    Value rows = axisToFront(n, x, axis);
    Value one = n.full(ArrayRef<Dim>(dimsOf(rows)).drop_front(), elementOf(x), 1);
    auto step = [&](ArrayRef<Value> states, ArrayRef<Value> slices) -> SmallVector<Value> {
      Value product = n.mul(states[0], slices[0]);
      return {product, exclusive ? states[0] : product};
    };
    return frontToAxis(n, walk(n, one, rows, step, reverse)[1], axis);
  }));
}

static constexpr int64_t kMostExpanded = 4;

/// Determinants of matrices [batch, size, size] with at most 4 rows: sums of products, without a
/// division.
static Value expandedDet(Node &n, Value matrices, int64_t size) {
  Dim batch = dimsOf(matrices)[0];
  auto at = [&](int64_t row, int64_t column) {
    Value one = n.sliceAlong(matrices, 1, Dim(row), Dim(1));
    return n.reshape(n.sliceAlong(one, 2, Dim(column), Dim(1)), {batch});
  };
  if (size == 0)
    return n.full({batch}, elementOf(matrices), 1);
  if (size == 1)
    return at(0, 0);
  auto minor = [&](int64_t row, int64_t a, int64_t b) { // minor of two rows and columns
    return n.sub(n.mul(at(row, a), at(row + 1, b)), n.mul(at(row, b), at(row + 1, a)));
  };
  if (size == 2)
    return minor(0, 0, 1);
  if (size == 3) {
    Value sum = n.mul(at(0, 0), minor(1, 1, 2));
    sum = n.sub(sum, n.mul(at(0, 1), minor(1, 0, 2)));
    return n.add(sum, n.mul(at(0, 2), minor(1, 0, 1)));
  }
  auto term = [&](int64_t a, int64_t b, int64_t c, int64_t d) {
    return n.mul(minor(0, a, b), minor(2, c, d));
  };
  Value plus =
      n.add(n.add(term(0, 1, 2, 3), term(0, 3, 1, 2)), n.add(term(1, 2, 0, 3), term(2, 3, 0, 1)));
  return n.sub(plus, n.add(term(0, 2, 1, 3), term(1, 3, 0, 2)));
}

/// Determinants: small matrices as above, others by Gaussian elimination with partial pivoting;
/// round k clears column k below the diagonal.
static void importDet(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  int64_t rank = dims.size();
  if (rank < 2)
    refuse("the input must have rank 2 or more, but has " + Twine(rank));
  Type element = elementOf(x), wide = wideType(n, element);
  DimVector outer(dims.begin(), dims.end() - 2);
  Dim batch = elementCount(outer), size = dims[rank - 1];
  DimVector matrix = {batch, size, size}, columnDims = {batch, size};
  Value matrices = n.reshape(n.cast(x, wide), matrix);
  if (auto known = size.constant(); known && *known <= kMostExpanded)
    return n.set(n.cast(n.reshape(expandedDet(n, matrices, *known), outer), element));
  Value row = countUp(n, size, n.i64()), zero = n.scalar(wide, 0);
  auto round = [&](Value k, ArrayRef<Value> states) -> SmallVector<Value> {
    Value a = states[0];
    Value column = n.gather(a, k, 2), isOpen = n.compare<GreaterEqualOp>(row, k);
    Value height = n.select(isOpen, n.unary<AbsOp>(column), n.scalar(wide, -1));
    Value best = n.infer<ArgMaxOp>(
        height, {n.integer("axis", 1), n.flag("keep_dims", true), n.flag("last", false)});
    // Rows k and best change places.
    Value isK = n.compare<EqualOp>(row, k), isBest = n.compare<EqualOp>(row, best);
    Value from = n.select(isK, best, n.select(isBest, k, row));
    Value source = n.broadcast(n.unsqueeze(n.broadcast(from, columnDims), {2}), matrix);
    a = n.infer<GatherElementsOp>({a, source}, {n.integer("axis", 1)});
    Value pivotRow = n.gather(a, k, 1), pivot = n.gather(pivotRow, k, 1); // [batch, n], [batch]
    column = n.gather(a, k, 2);
    Value isZero = n.compare<EqualOp>(pivot, zero);
    Value divisor = n.unsqueeze(n.select(isZero, n.scalar(wide, 1), pivot), {1});
    Value isBelow = n.compare<GreaterOp>(row, k);
    Value factor = n.select(isBelow, n.div(column, divisor), zero);
    Value next = n.sub(a, n.mul(n.unsqueeze(factor, {2}), n.unsqueeze(pivotRow, {1})));
    Value isSwapped = n.compare<NotEqualOp>(n.squeeze(best, {1}), k);
    Value sign = n.select(isSwapped, n.unary<NegOp>(pivot), pivot);
    return {next, n.mul(states[1], sign)};
  };
  Value start = n.full({batch}, wide, 1);
  Value det = repeat(n, n.size(size), {matrices, start}, round)[1];
  n.set(n.cast(n.reshape(det, outer), element));
}

/// Gauss-Jordan elimination with partial pivoting of [x, 1], which becomes [1, inverse].
static void importInverse(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  int64_t rank = dims.size();
  if (rank < 2 ||
      (dims[rank - 1].constant() && dims[rank - 2].constant() && dims[rank - 1] != dims[rank - 2]))
    refuse("the input must be square matrices, but has the shape " + textOf(dims));
  Type element = elementOf(x), wide = wideType(n, element);
  Dim batch = elementCount(ArrayRef<Dim>(dims).drop_back(2)), size = dims[rank - 1];
  DimVector both = {batch, size, size + size};
  Value row = countUp(n, size, n.i64());
  Value one = n.cast(n.compare<EqualOp>(n.unsqueeze(row, {1}), row), wide);
  DimVector square = {batch, size, size};
  Value start = n.concat({n.reshape(n.cast(x, wide), square), n.broadcast(one, square)}, 2);
  auto round = [&](Value k, ArrayRef<Value> states) -> SmallVector<Value> {
    Value a = states[0], column = n.gather(a, k, 2);
    Value height =
        n.select(n.compare<GreaterEqualOp>(row, k), n.unary<AbsOp>(column), n.scalar(wide, -1));
    Value best = n.infer<ArgMaxOp>(
        height, {n.integer("axis", 1), n.flag("keep_dims", true), n.flag("last", false)});
    Value isK = n.compare<EqualOp>(row, k), isBest = n.compare<EqualOp>(row, best);
    Value from = n.select(isK, best, n.select(isBest, k, row)); // rows k and best change places
    Value source = n.broadcast(n.unsqueeze(n.broadcast(from, {batch, size}), {2}), both);
    a = n.infer<GatherElementsOp>({a, source}, {n.integer("axis", 1)});
    Value pivotRow = n.gather(a, k, 1); // [batch, 2 * size]
    Value scaled = n.div(pivotRow, n.unsqueeze(n.gather(pivotRow, k, 1), {1}));
    Value factor = n.unsqueeze(n.gather(a, k, 2), {2}), line = n.unsqueeze(scaled, {1});
    return {n.select(n.unsqueeze(isK, {1}), line, n.sub(a, n.mul(factor, line)))};
  };
  Value whole = repeat(n, n.size(size), {start}, round)[0];
  n.set(n.cast(n.reshape(n.sliceAlong(whole, 2, size, size), dims), element));
}

void importBatchedScan(Node &n) {
  int64_t scanned = n.getInt("num_scan_inputs", 0), states = n.inputs() - 1 - scanned;
  if (scanned < 1 || states < 0)
    refuse("'num_scan_inputs' is " + Twine(scanned) + ", but the node has " + Twine(n.inputs()) +
           " inputs");
  Ints directions = n.getInts("directions", Ints(scanned, 0));
  if ((int64_t)directions.size() != scanned)
    refuse("'directions' needs " + Twine(scanned) + " entries");
  SmallVector<Value> whole; // states and inputs, then the lengths
  for (int64_t i = 0; i < states + scanned; ++i)
    whole.push_back(n.in(1 + i));
  Dim length = dimsOf(whole[states])[1];
  if (n.has(0))
    whole.push_back(n.cast(n.in(0), n.i64()));
  Value counter = countUp(n, length, n.i64());
  auto entry = [&](ArrayRef<Value>, ArrayRef<Value> one) -> SmallVector<Value> {
    SmallVector<Value> rows(one.slice(states, scanned));
    Value last = n.has(0) ? one.back() : Value();
    for (int64_t i = 0; i < scanned; ++i) {
      if (!directions[i])
        continue;
      Value end = last ? last : sizeNumber(n, length, n.i64());
      Value back = n.sub(n.add(end, n.integerScalar(n.i64(), -1)), counter);
      rows[i] = n.gather(rows[i], n.binary<MaxOp>(back, n.integerScalar(n.i64(), 0)), 0);
    }
    rows.push_back(counter);
    auto step = [&](ArrayRef<Value> before, ArrayRef<Value> slices) -> SmallVector<Value> {
      SmallVector<Value> inputs(before);
      inputs.append(slices.begin(), slices.end() - 1);
      SmallVector<Value> next = n.reader.readSubgraph(n.getGraph("body"), n.scope, inputs);
      if ((int64_t)next.size() < states)
        refuse("the body has " + Twine(next.size()) + " outputs, but needs " + Twine(states));
      if (!last)
        return next;
      Value isInside = n.compare<LessOp>(slices.back(), last);
      for (auto [i, value] : llvm::enumerate(next))
        value = n.select(isInside, value,
                         (int64_t)i < states ? before[i] : n.scalar(elementOf(value), 0));
      return next;
    };
    return walk(n, one.take_front(states), rows, step);
  };
  SmallVector<Value> results = walk(n, {}, whole, entry);
  for (size_t i = 0; i < std::min(n.outputs(), results.size()); ++i)
    n.set(i, results[i]);
}

OpRows stepwiseRows() {
  static const OpRow rows[] = {
      {"CumProd", "", 26, 27, importCumProd},
      {"Det", "", 11, 27, importDet},
      {"Inverse", kMicrosoft, 1, 1, importInverse},
  };
  return rows;
}

} // namespace heddle::onnx
