// Kernel: what the parts of an attention share: sizes, tiles and places in the scratch.
#ifndef HEDDLE_LOWER_ATTENTION_KERNEL_H
#define HEDDLE_LOWER_ATTENTION_KERNEL_H

#include "compiler/graph/edit/Band.h"
#include "compiler/lower/attention/Operands.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/mechanism/attention/Attention.h"

namespace heddle::lower {

/// Steps from scores to logits: a factor, and masks that are added or taken instead.
struct ScoreMasks {
  struct Step {
    mlir::Operation *op;
    unsigned scores; // the operand that the scores come through
  };
  double scale = 1;
  llvm::SmallVector<Step> steps; // in order
};

/// Masks that hide one side of a diagonal of the scores: there each is `hidden`, elsewhere 0.
struct SideMask {
  graph::Band seen;
  double hidden;
  graph::SelectOp choice; // by the diagonal
};

/// Writes one kernel: Layout.cpp, Attention.cpp, Visible.cpp and Softmax.cpp.
class AttentionKernel {
public:
  AttentionKernel(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule) {}

  mlir::LogicalResult prepare();
  void emit();

private:
  /// Strips of a head's query rows that meet each panel together, from row `first` on.
  struct Slab {
    Value first, strips;
  };
  /// Rows of a register tile: their numbers (past the last one it repeats), and the first of them
  /// in the scratch.
  struct Strip {
    Values rows;
    Value place;
    int64_t count() const { return rows.size(); }
  };

  /// Panels [first, end) of keys, which are columns [low, high) of the scores.
  struct Keys {
    Value first, end, low, high;
  };

  /// The largest key, NaN where no key may be left out, and the largest mask of a query, where all
  /// have the same.
  struct Bounds {
    Value keys, masks;
  };

  int64_t stripsTogether();
  void chooseTiles();
  void layOutScratch();
  Value stripsOfSlab();
  void emitSlab(Elements &e, const Slab &slab, const Bounds &bounds);
  Value rowsOfSlab(const Slab &slab);
  void forEachStrip(Elements &e, const Slab &slab, llvm::function_ref<void(const Strip &)> body);
  Strip stripOf(Value first, Value place, int64_t count);
  void copyQueries(Elements &e, const Slab &slab);
  void emitScores(Elements &e, const Strip &strip, Value panel, int64_t vectors);
  void emitSoftmax(Elements &e, const Slab &slab, const Keys &seen);
  void emitSoftmaxRow(Elements &e, Value row, Value place, const Keys &seen);
  void emitValueChunks(Elements &e, const Slab &slab, const Keys &seen);
  void emitValues(Elements &e, const Strip &strip, Value panel, const Keys &chunk,
                  const Keys &seen);
  void storeValues(Elements &e, const Strip &strip, llvm::ArrayRef<Value> sums, Value panel);
  Value largestOf(Value place);
  /// exp(x) of x <= 0 or NaN.
  Value exponential(Value x);
  Value powersAt(Elements &e, llvm::ArrayRef<Index> place);
  void bindNumber(Elements &e, Value tensor, Value value);

  // Visible.cpp
  void findMasks();
  void findSide();
  void bindSide(Elements &e);
  Keys keysOfSide(Elements &e, const Slab &slab);
  Keys panelsOf(Value low, Value high);
  bool areMasksOfKeys() const;
  Value maskOfScore(Elements &e, llvm::ArrayRef<Index> place);
  Value largestMagnitude(Elements &e, const Panels &panels, const Dim &offset);
  Value magnitudesAt(Value pointer, Value index, Value mask);
  Value largestOfLanes(Value magnitudes);
  Bounds boundsOfTask(Elements &e, Value firstRow);
  Value boundOfQueries(Elements &e, const Slab &slab);
  Value readMasks(Elements &e, Value firstRow, Value rows);
  Keys visibleKeys(Elements &e, const Slab &slab, const Bounds &bounds);

  Indices batchPlace(Elements &e, Value tensor);
  /// The place of a row, without the last index, in a tensor whose rows are those of the scores.
  Indices placeOfRow(Elements &e, Value tensor, Value row);
  Indices operandBatch(Elements &e, graph::MatmulOp product, Value operand);
  Value rowNumber(Value row);
  Values rowOffsets(const Strip &strip, const Dim &stride);
  Value scratchAt(const Dim &elements);

  KernelBuilder &kernel;
  mlir::Block *group;
  const Schedule &schedule;
  mechanism::AttentionParts parts;
  std::optional<ScoreMasks> masks; // that may hide keys
  std::optional<SideMask> side;    // what the masks are, if they are that alone
  Type number;                     // that all is computed in
  Dim batches, queries, keys, depth;
  Panels keyPanels, valuePanels;
  int64_t stripRows = 6;
  Dim strips, stripsOfTask;
  /// Element offsets in the scratch, and strides of rows there.
  Dim valuesAt, queriesAt, stripsAt, largestAt, sumsAt, partsAt, masksAt, scratchEnd;
  Dim queryStride, stripStride;
  Value batch; // of the task
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_ATTENTION_KERNEL_H
