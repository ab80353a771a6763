// Layout: sizes and tiles of an attention, and where what lies in a worker's scratch.
#ifndef HEDDLE_LOWER_ATTENTION_LAYOUT_H
#define HEDDLE_LOWER_ATTENTION_LAYOUT_H

#include "compiler/lower/attention/Operands.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/mechanism/attention/Attention.h"

namespace heddle::lower {

/// Strips of a head's query rows that meet each panel together, from row `first` on.
struct Slab {
  Value first, strips;
};

/// Panels [first, end) of keys, which are columns [low, high) of the scores. Rows see all keys of
/// those before panel `clear`, if there is one.
struct Keys {
  Value first, end, low, high, clear = {};
};

class AttentionLayout {
public:
  /// A direct one is for few queries: keys and values are read where they lie.
  AttentionLayout(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule,
                  bool isDirect)
      : kernel(kernel), group(group), schedule(schedule), isDirect(isDirect) {}

  /// Fails where the group is no attention.
  mlir::LogicalResult read();
  /// Tiles, and the scratch: with room for masks if there are any.
  void layOut(bool hasMasks);

  /// The most queries that a direct one takes; 0 where none can be.
  int64_t mostDirect();
  Value stripsOfSlab();
  /// Rows of the slab's strips in the scratch; the last strip may be one row.
  Value rowsOfSlab(const Slab &slab);
  /// The number of a row of queries, at most that of the last one.
  Value rowNumber(Value row);
  Value scratchAt(const Dim &elements);
  /// A product of rows of these panels, whose rows of A are at offsets from `rowsAt` on.
  TileProduct productOf(const Panels &panels, const Dim &panelsAt, const Dim &rowsAt,
                        llvm::ArrayRef<Value> rows, Value panel);
  /// The task's batch as indices of a tensor's own batch dimensions.
  Indices batchPlace(Elements &e, Value tensor);
  /// The place of a row, without the last index, in a tensor whose rows are those of the scores.
  Indices placeOfRow(Elements &e, Value tensor, Value row);

  KernelBuilder &kernel;
  mlir::Block *group;
  const Schedule &schedule;
  const bool isDirect;
  mechanism::AttentionParts parts;
  Type number; // that all is computed in
  /// Factors of the products, and how many of them a lane holds: numbers of bf16 are two.
  Type factor;
  int64_t together = 1;
  /// Whether registers that hold matrices multiply (Matrices.cpp), in steps of so many factors.
  bool hasMatrices = false;
  int64_t step = 1;
  Dim batches, queries, keys, depth;
  Panels keyPanels, valuePanels;
  int64_t stripRows = 6;
  Dim strips, stripsOfTask;
  /// Element offsets in the scratch, and strides of rows there.
  Dim valuesAt, queriesAt, stripsAt, largestAt, sumsAt, partsAt, masksAt, scratchEnd;
  Dim queryStride, stripStride;
  Value batch; // of the task

private:
  int64_t stripsTogether();
  void chooseTiles();
  void chooseMatrixTiles();
  void shareStrips();
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_ATTENTION_LAYOUT_H
