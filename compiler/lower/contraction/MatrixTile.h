// MatrixTile: a tile of a product in registers that hold matrices.
//
// Such registers multiply 16 rows of the left operand, 64 bytes of the reduction each, by as many
// of 16 columns. Rows of bytes, and those rounded to bf16 whose pieces are whole steps, are read
// where they lie, but for the last ones of a tensor, after which other memory is; others are packed
// in the worker's scratch, rounded on the way. The sums of a tile come back there.
// Panels of the right operand are what other tiles read, filled up to whole steps.
#ifndef HEDDLE_LOWER_CONTRACTION_MATRIXTILE_H
#define HEDDLE_LOWER_CONTRACTION_MATRIXTILE_H

#include "compiler/lower/contraction/Left.h"

namespace heddle::lower {

class MatrixTile {
public:
  MatrixTile(const ProductLayout &layout, LeftOperand &left)
      : layout(layout), kernel(layout.kernel), left(left) {}

  /// Lets its part of the worker's scratch begin with the line after so many bytes.
  void beginAfter(const Dim &bytes);
  Dim scratchEnd() const;
  /// Takes `rows` rows of the left operand, the first of which begins at its element `first`.
  void take(Value first, Value rows);
  /// Multiplies them by the panel at a pointer. Each step fetches so many lines from another one.
  void multiply(Value panel, Value fetched, int64_t fetchedLines);
  /// Sums of a row, in the vectors of a panel.
  Values sumsOf(Value row);

private:
  int64_t rowsOfTile() const;
  Dim stepsOfPiece() const;
  Value sums();
  Value packed();
  Dim pieceCount() const;
  Values taken(Value first);
  Values copied(Value first, Value rows);
  void packPieces(size_t piece, Value first, Value step, Value rows);
  void packRows(Value first, Value step, Value rows);
  void packColumns(Value first, Value step, Value rows);

  const ProductLayout &layout;
  KernelBuilder &kernel;
  LeftOperand &left;
  Dim scratchBegin = Dim(0);
  Values lines; // of the rows taken: address, and bytes from a piece and from a row to the next
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_MATRIXTILE_H
