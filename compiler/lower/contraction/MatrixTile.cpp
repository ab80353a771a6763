// MatrixTile: packing of rows, and their products.

#include "compiler/lower/contraction/MatrixTile.h"

#include "compiler/lower/contraction/Microkernel.h"

using namespace mlir;

namespace heddle::lower {

static constexpr int64_t kRows = program::kMatrixSize, kWords = program::kMatrixSize;

int64_t MatrixTile::rowsOfTile() const {
  return llvm::alignTo(std::max<int64_t>(1, layout.tiling().mostRows()), kRows);
}

Dim MatrixTile::stepsOfPiece() const {
  return layout.shape.length.ceilDiv(Dim(layout.stepLength()));
}

void MatrixTile::beginAfter(const Dim &bytes) {
  constexpr int64_t kLine = 64; // bytes
  scratchBegin = bytes.ceilDiv(Dim(kLine)) * Dim(kLine);
}

Dim MatrixTile::scratchEnd() const {
  Dim words = Dim(layout.panelWidth()); // of the sums of a row
  if (!layout.readsMatrices() || left.isInPlace())
    words = words + layout.panelRows().floorDiv(Dim(layout.depth));
  return scratchBegin + words * Dim(4 * rowsOfTile());
}

Value MatrixTile::sums() {
  Code &code = kernel.code();
  return code.at(kernel.scratch(), code.b.getI8Type(), kernel.dim(scratchBegin));
}

/// The packed rows: [pieces][steps][rows][16] words. They are after the sums.
Value MatrixTile::packed() {
  Code &code = kernel.code();
  return code.at(sums(), code.b.getI32Type(), code.number(rowsOfTile() * layout.panelWidth()));
}

Dim MatrixTile::pieceCount() const {
  Dim pieces(1);
  for (const Taps &taps : layout.shape.pieces)
    pieces = pieces * taps.count;
  return pieces;
}

void MatrixTile::take(Value first, Value rows) {
  Code &code = kernel.code();
  if (!layout.readsMatrices()) {
    packPieces(0, first, code.number(0), rows);
    int64_t ofStep = kWords * 4;
    lines = {packed(), kernel.dim(stepsOfPiece() * Dim(ofStep * rowsOfTile())),
             code.number(ofStep)};
    return;
  }
  lines = taken(first);
  if (!left.isInPlace())
    return;
  const ProductShape &shape = layout.shape;
  Dim reach = layout.runs.back().aStride * Dim(rowsOfTile() - 1) + layout.filledLength();
  for (const Taps &taps : shape.pieces)
    reach = reach + taps.aStep * (taps.count - Dim(1));
  Value end = kernel.dim(graph::elementCount(graph::dimsOf(shape.a)) + Dim(1));
  lines = code.choose(
      code.less(code.add(first, kernel.dim(reach)), end), ValueRange(lines).getTypes(),
      [&] { return lines; }, [&] { return copied(first, rows); });
}

/// The lines of rows that are read where they lie.
Values MatrixTile::taken(Value first) {
  Code &code = kernel.code();
  Dim bytes(layout.elementBytes()), piece(0);
  for (const Taps &taps : layout.shape.pieces) // one at most
    piece = taps.aStep * bytes;
  return {code.at(left.pointer(), layout.element, first), kernel.dim(piece),
          kernel.dim(layout.runs.back().aStride * bytes)};
}

/// Those of a copy: [rows][pieces][filled length].
Values MatrixTile::copied(Value first, Value rows) {
  Code &code = kernel.code();
  const ProductShape &shape = layout.shape;
  Value pieces = kernel.dim(pieceCount()), length = kernel.dim(shape.length);
  Value filled = kernel.dim(layout.filledLength());
  Value piece = shape.pieces.empty() ? code.number(0) : kernel.dim(shape.pieces[0].aStep);
  Value source = code.at(left.pointer(), layout.element, first);
  Value stride = kernel.dim(layout.runs.back().aStride);
  code.forEach(code.number(0), rows, 1, [&](Value row) {
    code.forEach(code.number(0), pieces, 1, [&](Value i) {
      Value at = code.add(code.mul(row, stride), code.mul(i, piece));
      Value number = code.mul(code.add(code.mul(row, pieces), i), filled);
      copyElements(code, layout.element, code.at(source, layout.element, at),
                   code.at(packed(), layout.element, number), length);
    });
  });
  Value bytes = code.number(layout.elementBytes());
  return {packed(), code.mul(filled, bytes), code.mul(code.mul(filled, pieces), bytes)};
}

/// Packs the pieces of the reduction from the `piece`-th loop over them on. `first`: the element of
/// the left operand where they begin; `step`: the number of their first step.
void MatrixTile::packPieces(size_t piece, Value first, Value step, Value rows) {
  Code &code = kernel.code();
  const ProductShape &shape = layout.shape;
  if (piece == shape.pieces.size()) {
    if (shape.aStep.isConstant(1))
      packRows(first, step, rows);
    else
      packColumns(first, step, rows);
    return;
  }
  Dim inside = stepsOfPiece();
  for (const Taps &taps : ArrayRef<Taps>(shape.pieces).drop_front(piece + 1))
    inside = inside * taps.count;
  const Taps &taps = shape.pieces[piece];
  code.forEach(code.number(0), kernel.dim(taps.count), 1, [&](Value i) {
    packPieces(piece + 1, code.add(first, code.mul(i, kernel.dim(taps.aStep))),
               code.add(step, code.mul(i, kernel.dim(inside))), rows);
  });
}

/// Rows whose elements are neighbours in memory.
void MatrixTile::packRows(Value first, Value step, Value rows) {
  Code &code = kernel.code();
  const Dim &length = layout.shape.length;
  bool isRounded = layout.isShort() && !left.isConverted() && !layout.isStoredShort();
  Type from = isRounded ? graph::storageOf(layout.shape.a) : layout.element,
       word = code.b.getI32Type();
  Value stride = kernel.dim(layout.runs.back().aStride);
  int64_t ofStep = layout.stepLength();
  Value whole = kernel.dim(length.floorDiv(Dim(ofStep))), all = kernel.dim(stepsOfPiece());
  Value start = code.mul(step, code.number(rowsOfTile()));
  code.forEach(code.number(0), rows, 1, [&](Value row) {
    Value source = code.add(first, code.mul(row, stride)), firstTarget = code.add(start, row);
    auto targetOf = [&](Value i) {
      return code.mul(code.add(firstTarget, code.mul(i, code.number(rowsOfTile()))),
                      code.number(kWords));
    };
    auto copyWords = [&](Value i) {
      Value at = code.at(left.pointer(), from, code.add(source, code.mul(i, code.number(ofStep))));
      for (int64_t w = 0; w < kWords; w += code.lanes) {
        Value address = code.at(at, word, code.number(w));
        Value words = code.b.create<program::LoadOp>(code.loc, code.vectorOf(word), address,
                                                     layout.elementBytes());
        code.storeLanes(word, words, packed(), code.add(targetOf(i), code.number(w)), {});
      }
    };
    auto copyElements = [&](Value i, bool isMasked) {
      Value k = code.mul(i, code.number(ofStep));
      Value target = code.mul(targetOf(i), code.number(layout.depth));
      for (int64_t at = 0; at < ofStep; at += code.lanes) {
        Value place = code.add(k, code.number(at)), mask;
        if (isMasked)
          mask = code.maskOf(code.max(code.sub(kernel.dim(length), place), code.number(0)));
        Value lanes = code.loadLanes(from, left.pointer(), code.add(source, place), mask);
        code.storeLanes(layout.element, isRounded ? shortBits(code, lanes) : lanes, packed(),
                        code.add(target, code.number(at)), {});
      }
    };
    code.forEach(code.number(0), whole, 1, [&](Value i) {
      if (isRounded)
        copyElements(i, /*isMasked=*/false);
      else
        copyWords(i);
    });
    code.forEach(whole, all, 1, [&](Value i) { copyElements(i, /*isMasked=*/true); });
  });
}

/// Rows that are neighbours in memory: squares of as many rows and words as a vector has lanes, a
/// word of each row in a vector, transposed.
void MatrixTile::packColumns(Value first, Value step, Value rows) {
  Code &code = kernel.code();
  const Dim &length = layout.shape.length;
  Type from = graph::storageOf(layout.shape.a), word = code.b.getI32Type();
  int64_t lanes = code.lanes;
  code.forEach(code.number(0), rows, lanes, [&](Value row) {
    Value count = code.min(code.number(lanes), code.sub(rows, row));
    auto load = [&](Value k) {
      Value isThere = code.less(k, kernel.dim(length));
      Value some = code.b.create<arith::SelectOp>(code.loc, isThere, count, code.number(0));
      Value at = code.add(code.add(first, row), code.mul(k, kernel.dim(layout.shape.aStep)));
      return code.loadLanes(from, left.pointer(), at, code.maskOf(some));
    };
    code.forEach(code.number(0), kernel.dim(stepsOfPiece()), 1, [&](Value i) {
      Value k = code.mul(i, code.number(layout.stepLength()));
      Value target = code.mul(code.add(step, i), code.number(rowsOfTile()));
      target = code.mul(code.add(target, row), code.number(kWords));
      for (int64_t square = 0; square < kWords; square += lanes) {
        Values words;
        for (int64_t w = square; w < square + lanes; ++w) {
          Value even = code.add(k, code.number(2 * w));
          words.push_back(shortPairs(code, load(even), load(code.add(even, code.number(1)))));
        }
        for (auto [r, packedRow] : llvm::enumerate(code.transpose(words)))
          code.storeLanes(word, packedRow, packed(),
                          code.add(target, code.number(int64_t(r) * kWords + square)), {});
      }
    });
  });
}

void MatrixTile::multiply(Value panel, Value fetched, int64_t fetchedLines) {
  Code &code = kernel.code();
  int64_t stepBytes = kWords * 4 * (layout.readsMatrices() ? 1 : rowsOfTile());
  program::DotKind kind = layout.isShort() ? program::DotKind::ShortFloats
                          : graph::storageOf(layout.shape.a).isUnsignedInteger()
                              ? program::DotKind::UnsignedBytes
                              : program::DotKind::Bytes;
  code.b.create<program::MultiplyMatricesOp>(code.loc, kind, sums(), lines[0], lines[1], lines[2],
                                             stepBytes, panel, kernel.dim(pieceCount()),
                                             kernel.dim(stepsOfPiece()), fetched, fetchedLines,
                                             rowsOfTile(), layout.panelWidth());
}

Values MatrixTile::sumsOf(Value row) {
  Code &code = kernel.code();
  Value first = code.mul(row, code.number(layout.panelWidth()));
  Values vectors;
  for (int64_t j = 0; j < layout.vectors; ++j)
    vectors.push_back(code.loadLanes(layout.accumulator, sums(),
                                     code.add(first, code.number(j * code.lanes)), {}));
  return vectors;
}

} // namespace heddle::lower
