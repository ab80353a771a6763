// Operands: the right operands of an attention's products in panels, the rows of its left
// one.
#ifndef HEDDLE_LOWER_ATTENTION_OPERANDS_H
#define HEDDLE_LOWER_ATTENTION_OPERANDS_H

#include "compiler/lower/Schedule.h"

namespace heddle::lower {

/// Columns of a right operand in panels [columns / width][rows / depth][width][depth], in the
/// worker's scratch.
struct Panels {
  Dim rows, columns;
  int64_t vectors = 1, width = 16; // vectors that have columns, and lanes
  Type element;                    // that its numbers are computed in
  int64_t depth = 1;               // 2: they are rounded to bf16, of which two fill a lane
  int64_t step = depth;            // rows are filled up to a multiple of it, with zeros

  Dim count() const { return columns.ceilDiv(Dim(width)); }
  /// Lanes of a panel, and of all.
  Dim stride() const { return rows.ceilDiv(Dim(step)) * Dim(step / depth * width); }
  Dim elements() const { return count() * stride(); }
};

/// The vectors of a panel: as many as asked for, fewer where as many panels do with fewer.
int64_t vectorsOf(const Dim &columns, int64_t wanted, int64_t lanes);
/// The vectors of `n` columns, by default as many as the registers are for.
int64_t wantedVectors(const Schedule &schedule, const program::Machine &machine);

/// All but the last two sizes.
DimVector batchDims(Value tensor);
/// The place of an operand's matrix, where that of the product's result is at `batch`.
Indices operandBatch(Elements &elements, graph::MatmulOp product, Value operand,
                     llvm::ArrayRef<Index> batch);
/// The place that transposes and reshapes, one after the other, move what is at `place` to.
Indices placeAfterMoves(Elements &elements, llvm::ArrayRef<mlir::Operation *> moves, Indices place);
/// Lanes from `column` on that are columns; null if all are in panels of this width.
Value maskOfColumns(Elements &elements, const Dim &columns, int64_t width, Value column);

/// Whether memory walks the rows of the matrix that the last two dimensions are fastest.
bool isTransposed(mlir::Block *group, Value value);
/// Whether an element only takes a read, and perhaps a cast or a product with its scale.
bool isRead(mlir::Block *group, Value value);

/// Packs the matrix that the last two dimensions of `tensor` are, at `batch`, to `target`.
void packPanels(Elements &elements, const Panels &panels, Value tensor, llvm::ArrayRef<Index> batch,
                Value target);

/// Fills a row of `length` factors, of which full vectors are there, up to a step of the panels.
void fillRow(Elements &elements, const Panels &panels, Value row, Value length);
/// Copies rows of the matrix at `batch`, in full vectors, each to its offset in `target`; for
/// panels of depth 2 they are rounded to bf16, and filled up as these are.
void copyRows(Elements &elements, Value tensor, llvm::ArrayRef<Index> batch,
              llvm::ArrayRef<Value> rows, const Panels &panels, Value target,
              llvm::ArrayRef<Value> offsets);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_ATTENTION_OPERANDS_H
