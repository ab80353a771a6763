// Cut: sums of products parts of which are 0.
//
// Where the left operand is 0 on one side of a diagonal, what all rows of a tile have is summed up
// as ever; around the diagonal the elements that do not count are 0; the rest is left out. A panel
// with numbers that are not finite is not cut, as 0 times these is NaN. Where matrices of a batch
// have sizes of their own, a tile outside of them has no terms, and the others as many as count.

#include "compiler/lower/contraction/Contraction.h"

using namespace mlir;

namespace heddle::lower {

/// Whether the element, 0 or positive, is infinity or NaN. Numbers without their sign are ordered
/// as their bits are.
static Value isInfinite(Code &code, Type element, Value largest) {
  Value infinity = code.constantOf(element, std::numeric_limits<double>::infinity());
  infinity = code.b.create<arith::BitcastOp>(code.loc, largest.getType(), infinity);
  return code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::uge, largest, infinity);
}

/// Notes whether the packed panel at `target` has to be multiplied as a whole.
void Contraction::noteWhole(Value target, Value panelNumber) {
  Code &code = kernel.code();
  Type bits = IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
  int64_t magnitude = bits.getIntOrFloatBitWidth() == 64 ? INT64_MAX : INT32_MAX;
  Value memory = packedPointer();
  Value end = code.add(target, code.mul(kernel.dim(shape.reduction), code.number(panelWidth())));
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
  code.store(isWhole.getType(), isWhole, kernel.temporary(wholeTemporary), panelNumber);
}

/// The limit of a matrix, from 0 to `most`.
Value Contraction::limitAt(Elements &e, Value limit, ArrayRef<Index> batch, const Dim &most) {
  Code &code = kernel.code();
  DimVector dims = graph::dimsOf(limit);
  Indices place(batch);
  for (auto [index, dim] : llvm::zip(place, dims))
    if (dim.isConstant(1))
      index = e.uniform(code.number(0));
  place.append(2, e.uniform(code.number(0)));
  Value size = e.lanesOf(e.fromLanes(e.at(limit, place)));
  return code.min(code.max(size, code.number(0)), kernel.dim(most));
}

/// How many terms the elements of a panel have that begins at this column.
Value Contraction::depthOf(Elements &e, ArrayRef<Index> batch, Value column) {
  Code &code = kernel.code();
  if (!shape.limits)
    return kernel.dim(shape.reduction);
  Value depth = limitAt(e, shape.limits->depth, batch, shape.reduction);
  if (!shape.limits->columns)
    return depth;
  Value isInside = code.less(column, limitAt(e, shape.limits->columns, batch, shape.columns));
  return code.b.create<arith::SelectOp>(code.loc, isInside, depth, code.number(0));
}

SmallVector<Value> Contraction::emitBandSums(const RegisterTile &tile, const TileProduct &product,
                                             ArrayRef<Value> rowNumbers, Value panelNumber) {
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
  // What some rows have is [first, end) without the middle, which all rows have.
  Value edgeLow = limits.front(), edgeHigh = limits.back();
  Value low = isLower ? none : edgeHigh, high = isLower ? edgeLow : all;
  Value first = isLower ? high : edgeLow, end = isLower ? edgeHigh : low;
  Type flag = code.b.getI1Type();
  Value whole = wholeTemporary >= 0 ? code.load(flag, kernel.temporary(wholeTemporary), panelNumber)
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
    part.bOffset = code.add(product.bOffset, code.mul(from, code.number(panelWidth())));
    part.length = code.sub(to, from);
    part.counts = nullptr;
    if (isEdge)
      part.counts = [&](int64_t row, Value k) {
        Value at = code.add(from, k);
        return isLower ? code.less(at, limits[row])
                       : code.less(limits[row], code.add(at, code.number(1)));
      };
    part.start = emitSums(tile, part);
  };
  sumUp(unlessWhole(none, low), unlessWhole(none, high), /*isEdge=*/false);
  sumUp(unlessWhole(none, first), unlessWhole(all, end), /*isEdge=*/true);
  return part.start;
}

} // namespace heddle::lower
