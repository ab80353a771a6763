// PanelWriter: columns of each form as vectors of a panel, one row of the reduction after the
// other.

#include "compiler/lower/contraction/PanelWriter.h"

#include "compiler/lower/contraction/Integers.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/stored/FilterLanes.h"

using namespace mlir;

namespace heddle::lower {

/// The operand of a transpose of the last two dimensions that only this group sees.
static Value transposedSource(Block *group, Value b) {
  auto transpose = b.getDefiningOp<graph::TransposeOp>();
  if (!transpose || transpose->getBlock() != group || graph::bytesOf(graph::storageOf(b)) != 4)
    return {};
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  int64_t rank = permutation.size();
  for (int64_t i = 0; i + 2 < rank; ++i)
    if (permutation[i] != i)
      return {};
  return permutation[rank - 1] == rank - 2 ? transpose.getX() : Value();
}

Indices placeInRight(Elements &e, const ProductShape &shape, const Indices &matrix, Value row,
                     Value column) {
  Code &code = e.code();
  auto conv = dyn_cast<graph::ConvOp>(shape.root);
  if (!conv) {
    Indices place(matrix);
    place.push_back(e.uniform(row));
    place.push_back({column, 1, {}});
    return place;
  }
  DimVector w = graph::dimsOf(conv.getW());
  Value filter = code.add(code.mul(matrix[0].base, e.kernel.dim(shape.columns)), column);
  Indices place(w.size(), e.uniform(code.rem(row, e.kernel.dim(w[1]))));
  place[0] = {filter, 1, {}};
  Value tap = code.div(row, e.kernel.dim(w[1]));
  for (size_t d = w.size(); d-- > 2;) {
    place[d] = e.uniform(code.rem(tap, e.kernel.dim(w[d])));
    tap = code.div(tap, e.kernel.dim(w[d]));
  }
  return place;
}

/// Columns [column, column + lanes) of a right operand whose columns are rows in memory.
void PanelWriter::writeTransposed(Elements &e, Value rows, const Indices &matrix, Value column,
                                  Value target, int64_t shift) {
  Code &code = kernel.code();
  Value depth = kernel.dim(shape.reduction);
  Value last = code.sub(kernel.dim(shape.columns), code.number(1));
  ColumnPlaces places{memory(), element, code.add(target, code.number(shift)),
                      code.number(layout.panelWidth())};
  storeColumns(e, code.number(0), depth, places, [&](int64_t number, Value k) {
    Indices place(matrix);
    place.push_back(e.uniform(code.min(code.add(column, code.number(number)), last)));
    place.push_back({k, 1, {}});
    return code.spread(e.at(rows, place));
  });
}

/// A panel of filters, of which `columns` are first in its vectors: [in, window...] of each become
/// [window..., in]. All vectors of some rows before the next ones, which are lines side by side.
void PanelWriter::writeFilters(Elements &e, Value groupNumber, ArrayRef<Value> columns,
                               Value target) {
  constexpr int64_t kRows = 256; // at a time; any number
  auto conv = cast<graph::ConvOp>(shape.root);
  Code &code = kernel.code();
  Value depth = kernel.dim(shape.reduction), width = code.number(layout.panelWidth());
  Value last = code.sub(kernel.dim(shape.columns), code.number(1));
  Value before = code.mul(groupNumber, kernel.dim(shape.columns));
  ColumnPlaces places{memory(), element, target, width};
  if (!shape.taps.isConstant(1)) {
    places.taps = kernel.dim(shape.taps);
    places.inner = code.mul(kernel.dim(graph::dimsOf(conv.getW())[1]), width);
  }
  code.forEach(code.number(0), depth, kRows, [&](Value row) {
    Value end = code.min(code.add(row, code.number(kRows)), depth);
    for (auto [vector, column] : llvm::enumerate(columns)) {
      Elements::Scope scope(e);
      places.first = code.add(target, code.number(vector * code.lanes));
      storeColumns(e, row, end, places, [&](int64_t number, Value k) {
        Value filter = code.min(code.add(column, code.number(number)), last);
        return filterLanes(e, shape.b, code.add(before, filter), depth, k);
      });
    }
  });
}

/// The lanes from `column` on, of which mask() says which exist, to `target` + `shift`.
void PanelWriter::writeColumns(Elements &e, const Indices &matrix, Value column, Value target,
                               int64_t shift) {
  Code &code = kernel.code();
  Value width = code.number(layout.panelWidth());
  foldScoped(e, code.number(0), depthOf(e, shape, matrix, column), {}, [&](Value k, ValueRange) {
    Value value = code.spread(e.at(shape.b, placeInRight(e, shape, matrix, k, column)));
    Value at = code.add(target, code.add(code.mul(k, width), code.number(shift)));
    code.storeLanes(element, value, memory(), at, {});
    return Values();
  });
}

/// The columns of one vector of a panel known only at run time, `depth` rows at a time. Lanes that
/// e.mask leaves out read as zeros.
void PanelWriter::writeDots(Elements &e, const Indices &matrix, Value column, Value target,
                            Value number, int64_t vector) {
  Code &code = kernel.code();
  Type word = code.b.getI32Type();
  Value sum = code.spread(code.integerOf(word, 0));
  target = code.add(target, code.number(vector * code.lanes * depth));
  if (shape.pieces.empty()) {
    sum = writeDotPiece(e, matrix, column, code.number(0), target, sum);
  } else {
    Dim pieces(1);
    for (const Taps &taps : shape.pieces)
      pieces = pieces * taps.count;
    Value rows = kernel.dim(layout.panelRows().floorDiv(pieces));
    auto packPiece = [&](Value piece, ValueRange in) {
      Value first = code.mul(piece, kernel.dim(shape.length));
      Value start = code.mul(piece, code.mul(rows, code.number(layout.panelWidth())));
      return Values{writeDotPiece(e, matrix, column, first, code.add(target, start), in[0])};
    };
    sum = foldScoped(e, code.number(0), kernel.dim(pieces), sum, packPiece)[0];
  }
  if (starts < 0)
    return;
  Value factor = code.spread(code.integerOf(word, shiftOfSums(kernel.machine)));
  Value start = code.b.create<arith::MulIOp>(code.loc, sum, factor);
  Value first = code.mul(number, code.number(layout.panelWidth()));
  code.storeLanes(layout.accumulator, start, kernel.temporary(starts),
                  code.add(first, code.number(vector * code.lanes)), {});
}

/// One piece of the reduction, whose rows begin at `firstRow`, filled up with zeros to whole steps;
/// `sum` and what its columns sum up to.
Value PanelWriter::writeDotPiece(Elements &e, const Indices &matrix, Value column, Value firstRow,
                                 Value target, Value sum) {
  Code &code = kernel.code();
  bool isUnsigned = graph::storageOf(shape.b).isUnsignedInteger();
  Type word = code.b.getI32Type();
  Value rows = kernel.dim(shape.length), zero = code.spread(code.integerOf(word, 0));
  auto pack = [&](Value k, Value sum, bool isLast) {
    Value packed = zero;
    for (int64_t i = 0; i < depth; ++i) {
      Value row = code.add(k, code.number(i));
      Value inside = isLast ? code.min(row, code.sub(rows, code.number(1))) : row;
      Indices here = placeInRight(e, shape, matrix, code.add(firstRow, inside), column);
      Value part = code.spread(e.at(shape.b, here));
      part = layout.isShort() ? shortWords(code, part) : widen(e, part, word, isUnsigned);
      if (isLast)
        part = code.b.create<arith::SelectOp>(code.loc, code.less(row, rows), part, zero);
      sum = code.b.create<arith::AddIOp>(code.loc, sum, part);
      // Only the low bits of an element count, at the place of the i-th one.
      auto left = code.spread(code.integerOf(word, 32 - 32 / depth));
      auto right = code.spread(code.integerOf(word, 32 - 32 / depth * (i + 1)));
      part = code.b.create<arith::ShLIOp>(code.loc, part, left);
      part = code.b.create<arith::ShRUIOp>(code.loc, part, right);
      packed = code.b.create<arith::OrIOp>(code.loc, packed, part);
    }
    Value at = code.add(target, code.mul(k, code.number(layout.panelWidth())));
    Value address = code.at(memory(), element, at);
    code.storeLanes(word, packed, address, code.number(0), {});
    return Values{sum};
  };
  Dim whole = shape.length.floorDiv(Dim(depth));
  Dim rest = shape.length.ceilDiv(Dim(depth)) - whole;
  auto sums = foldScoped(e, code.number(0), kernel.dim(whole), sum, [&](Value i, ValueRange in) {
    return pack(code.mul(i, code.number(depth)), in[0], /*isLast=*/false);
  });
  sums = foldScoped(e, code.number(0), kernel.dim(rest), sums, [&](Value, ValueRange in) {
    return pack(code.mul(kernel.dim(whole), code.number(depth)), in[0], /*isLast=*/true);
  });
  int64_t stepLength = layout.stepLength();
  Dim filled = shape.length.ceilDiv(Dim(stepLength)) * Dim(stepLength / depth);
  code.forEach(kernel.dim(whole + rest), kernel.dim(filled), 1, [&](Value i) {
    Value at = code.mul(i, code.number(depth * layout.panelWidth()));
    Value address = code.at(memory(), element, code.add(target, at));
    code.storeLanes(word, zero, address, code.number(0), {});
  });
  return sums[0];
}

void PanelWriter::write(Elements &e, Value batch, Value panel, Value target, Value number) {
  Code &code = kernel.code();
  int64_t lanes = code.lanes;
  bool areFilters = isa<graph::ConvOp>(shape.root) && element.isF32();
  DimVector matrices =
      isa<graph::ConvOp>(shape.root) ? DimVector{shape.groups} : DimVector(shape.bBatch);
  Indices matrix = indicesOf(e, matrices, batch);
  Value first = code.mul(panel, code.number(layout.partWidth()));
  bool isExact = layout.arePanelsFull();
  Values columns;
  for (int64_t j = 0; j < layout.vectors; ++j) {
    int64_t part = j / (layout.vectors / layout.parts);
    Value inPart = code.add(first, code.number(j % (layout.vectors / layout.parts) * lanes));
    Value column = code.add(inPart, kernel.dim(layout.partColumns * Dim(part)));
    columns.push_back(column);
    if (areFilters)
      continue;
    if (Value rows = depth == 1 ? transposedSource(layout.group, shape.b) : Value()) {
      writeTransposed(e, rows, matrix, column, target, j * lanes);
      continue;
    }
    e.mask = isExact ? Value()
                     : code.maskOf(code.max(code.sub(kernel.dim(layout.partColumns), inPart),
                                            code.number(0)));
    if (depth > 1)
      writeDots(e, matrix, column, target, number, j);
    else
      writeColumns(e, matrix, column, target, j * lanes);
    e.mask = {};
  }
  if (areFilters)
    writeFilters(e, batch, columns, target);
  if (shape.band)
    band.note(memory(), target, code.add(code.mul(batch, kernel.dim(layout.panels)), panel));
}

} // namespace heddle::lower
