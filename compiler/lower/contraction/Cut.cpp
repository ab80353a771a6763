// Cut: how far sums go, and which of their terms count.

#include "compiler/lower/contraction/Cut.h"

#include "compiler/graph/Constants.h"

using namespace mlir;

namespace heddle::lower {

Value limitAt(Elements &e, Value limit, ArrayRef<Index> batch, const Dim &most) {
  Code &code = e.code();
  DimVector dims = graph::dimsOf(limit);
  Indices place(batch);
  for (auto [index, dim] : llvm::zip(place, dims))
    if (dim.isConstant(1))
      index = e.uniform(code.number(0));
  place.append(2, e.uniform(code.number(0)));
  Value size = e.lanesOf(e.fromLanes(e.at(limit, place)));
  return code.min(code.max(size, code.number(0)), e.kernel.dim(most));
}

Value depthOf(Elements &e, const ProductShape &shape, ArrayRef<Index> batch, Value column) {
  Code &code = e.code();
  if (!shape.limits)
    return e.kernel.dim(shape.reduction);
  Value depth = limitAt(e, shape.limits->depth, batch, shape.reduction);
  if (!shape.limits->columns)
    return depth;
  Value isInside = code.less(column, limitAt(e, shape.limits->columns, batch, shape.columns));
  return code.b.create<arith::SelectOp>(code.loc, isInside, depth, code.number(0));
}

void Band::prepareNotes() {
  Dim matrices = graph::elementCount(layout.shape.bBatch);
  wholes = kernel.addTemporary(matrices * layout.panels);
}

void Band::noteConstant(ArrayRef<char> bytes, int64_t count) {
  for (int64_t i = 0; i < count && !isWhole; ++i)
    isWhole = !std::isfinite(*graph::elementAt(bytes, layout.element, i));
}

/// Whether the element, 0 or positive, is infinity or NaN. Numbers without their sign are ordered
/// as their bits are.
static Value isInfinite(Code &code, Type element, Value largest) {
  Value infinity = code.constantOf(element, std::numeric_limits<double>::infinity());
  infinity = code.b.create<arith::BitcastOp>(code.loc, largest.getType(), infinity);
  return code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::uge, largest, infinity);
}

void Band::note(Value memory, Value target, Value panelNumber) {
  Code &code = kernel.code();
  Type element = layout.element;
  Type bits = IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
  int64_t magnitude = bits.getIntOrFloatBitWidth() == 64 ? INT64_MAX : INT32_MAX;
  Value end = code.add(
      target, code.mul(kernel.dim(layout.shape.reduction), code.number(layout.panelWidth())));
  Value none = code.spread(code.integerOf(bits, 0));
  Values largest = code.fold(target, end, code.lanes, none, [&](Value at, ValueRange in) {
    Value lanes = code.b.create<arith::BitcastOp>(code.loc, none.getType(),
                                                  code.loadLanes(element, memory, at, {}));
    lanes =
        code.b.create<arith::AndIOp>(code.loc, lanes, code.spread(code.integerOf(bits, magnitude)));
    return Values{code.b.create<arith::MaxUIOp>(code.loc, in[0], lanes)};
  });
  Value most =
      code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::MAXUI, largest.front());
  Value isWhole = isInfinite(code, element, most);
  code.store(isWhole.getType(), isWhole, kernel.temporary(wholes), panelNumber);
}

SmallVector<Value> Band::sums(const TileProduct &product, ArrayRef<Value> rowNumbers,
                              Value panelNumber, Sums sumsOf) {
  const ProductShape &shape = layout.shape;
  Code &code = kernel.code();
  Value none = code.number(0), all = kernel.dim(shape.reduction);
  Value shift = kernel.dim(shape.band->shift);
  bool isLower = shape.band->isLower;
  // Elements [0, limit) of a row count, or [limit, all).
  auto limitOf = [&](Value row) {
    Value limit = code.add(code.add(row, shift), code.number(isLower ? 1 : 0));
    return code.min(code.max(limit, none), all);
  };
  Values limits = llvm::map_to_vector<6>(rowNumbers, limitOf);
  // Some rows have [first, end) without the middle, which all rows have.
  Value edgeLow = limits.front(), edgeHigh = limits.back();
  Value low = isLower ? none : edgeHigh, high = isLower ? edgeLow : all;
  Value first = isLower ? high : edgeLow, end = isLower ? edgeHigh : low;
  Type flag = code.b.getI1Type();
  Value whole = wholes >= 0 ? code.load(flag, kernel.temporary(wholes), panelNumber)
                            : code.integerOf(flag, isWhole);
  auto unlessWhole = [&](Value otherwise, Value bound) {
    return code.b.createOrFold<arith::SelectOp>(code.loc, whole, otherwise, bound);
  };
  TileProduct part = product;
  auto sumUp = [&](Value from, Value to, bool isEdge) {
    Values rows;
    for (Value row : product.aRows)
      rows.push_back(code.add(row, from));
    part.aRows = rows;
    part.bOffset = code.add(product.bOffset, code.mul(from, code.number(layout.panelWidth())));
    part.length = code.sub(to, from);
    part.counts = nullptr;
    if (isEdge)
      part.counts = [&](int64_t row, Value k) {
        Value at = code.add(from, k);
        return isLower ? code.less(at, limits[row])
                       : code.less(limits[row], code.add(at, code.number(1)));
      };
    part.start = sumsOf(part);
  };
  sumUp(unlessWhole(none, low), unlessWhole(none, high), /*isEdge=*/false);
  sumUp(unlessWhole(none, first), unlessWhole(all, end), /*isEdge=*/true);
  return part.start;
}

} // namespace heddle::lower
