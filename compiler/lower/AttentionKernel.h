// AttentionKernel: what the parts of an attention share: sizes, tiles and places in the scratch.
#ifndef HEDDLE_LOWER_ATTENTIONKERNEL_H
#define HEDDLE_LOWER_ATTENTIONKERNEL_H

#include "compiler/loop/Attention.h"
#include "compiler/lower/AttentionOperands.h"
#include "compiler/lower/Definitions.h"

namespace heddle::lower {

class AttentionKernel {
public:
  AttentionKernel(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule) {}

  mlir::LogicalResult prepare();
  void emit();

private:
  /// Some query rows of a head and where they are.
  struct Strip {
    Value first;   // row
    int64_t count; // known when compiling
    bool clamp;    // rows past the last one repeat it
    Values rows;
  };

  void chooseTiles();
  void layOutScratch();
  void emitTile(Elements &e, Value tile);
  void emitStrip(Elements &e, Value first, int64_t count, bool clamp);
  void emitScores(Elements &e, const Strip &strip);
  void emitSoftmax(Elements &e, const Strip &strip);
  void emitValues(Elements &e, const Strip &strip);
  void storeValues(Elements &e, const Strip &strip, llvm::ArrayRef<Value> sums, Value firstColumn);
  /// exp(x) of x <= 0 or NaN.
  Value exponential(Value x);
  Value powersAt(Elements &e, llvm::ArrayRef<Index> place);
  void bindNumber(Elements &e, Value tensor, Value memory, Value index);

  Indices batchPlace(Elements &e, Value tensor);
  Indices operandBatch(Elements &e, graph::MatmulOp product, Value operand);
  Indices resultPlace(Elements &e, Indices place);
  Value rowNumber(Value first, Value shift, bool clamp);
  Value scratchAt(const Dim &elements);
  Value maskAt(Elements &e, const Dim &columns, int64_t width, Value column);

  KernelBuilder &kernel;
  mlir::Block *group;
  const Schedule &schedule;
  loop::AttentionParts parts;
  Type number; // that all is computed in
  Dim batches, queries, keys, depth;
  Panels keyPanels, valuePanels;
  int64_t stripRows = 6;
  Dim tiles, tilesOfTask;
  /// Element offsets in the scratch, and strides of rows there.
  Dim valuesAt, queriesAt, stripAt, maximaAt, sumsAt, scratchEnd, queryStride, stripStride;
  Value batch; // of the task
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_ATTENTIONKERNEL_H
