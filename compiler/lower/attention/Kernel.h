// Kernel: an attention as one kernel, strip by strip (Attention.cpp, Softmax.cpp).
#ifndef HEDDLE_LOWER_ATTENTION_KERNEL_H
#define HEDDLE_LOWER_ATTENTION_KERNEL_H

#include "compiler/lower/attention/Visible.h"

namespace heddle::lower {

class AttentionKernel {
public:
  AttentionKernel(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule,
                  bool isDirect = false)
      : kernel(kernel), layout(kernel, group, schedule, isDirect), visibility(layout),
        number(layout.number) {}

  mlir::LogicalResult prepare();
  void emit();

private:
  /// Rows of a register tile: their numbers (past the last one it repeats), and the first of them
  /// in the scratch. One of matrices has its first row alone, and its rows one by one.
  struct Strip {
    Values rows;
    Value place;
    int64_t count() const { return rows.size(); }
  };

  void emitPacked(Elements &e, Value first, Value end);
  void emitDirect(Elements &e, Value batch, Value first, Value end);
  Values dotsOf(Elements &e, const Strip &strip, Value panel);
  Values weighed(Elements &e, const Strip &strip, Value panel, const Keys &chunk,
                 mlir::ValueRange start);
  void emitSlab(Elements &e, const Slab &slab, const Visibility::Bounds &bounds);
  void forEachStrip(Elements &e, const Slab &slab, llvm::function_ref<void(const Strip &)> body);
  void forEachRow(Elements &e, const Strip &strip, llvm::function_ref<void(const Strip &)> body);
  Strip stripOf(Value first, Value place, int64_t count);
  void copyQueries(Elements &e, const Slab &slab);
  void emitScores(Elements &e, const Strip &strip, Value panel, int64_t vectors);
  void storeScores(Elements &e, const Strip &strip, llvm::ArrayRef<Value> sums, Value panel,
                   int64_t vectors);
  void emitSoftmax(Elements &e, const Slab &slab, const Keys &seen);
  void emitSoftmaxRow(Elements &e, Value row, Value place, const Keys &seen);
  void emitValueChunks(Elements &e, const Slab &slab, const Keys &seen);
  void emitValues(Elements &e, const Strip &strip, Value panel, const Keys &chunk,
                  const Keys &seen);
  void storeValues(Elements &e, const Strip &strip, llvm::ArrayRef<Value> sums, Value panel);
  void multiplyMatrices(const Strip &strip, const Panels &panels, Value rows, const Dim &stride,
                        Value panel, Value steps);
  void multiplyQueries(const Strip &strip, Value panel);
  void emitMatrixValues(Elements &e, const Slab &slab, const Keys &seen);
  Values sumsOf(const Strip &row, const Panels &panels);
  Value largestOf(Value place);
  /// exp(x) of x <= 0 or NaN.
  Value exponential(Value x);
  Value powersAt(Elements &e, llvm::ArrayRef<Index> place);
  void bindNumber(Elements &e, Value tensor, Value value);

  Indices operandBatch(Elements &e, graph::MatmulOp product, Value operand);
  Values rowOffsets(const Strip &strip, const Dim &stride);
  Values factorRows(const Strip &strip, const Dim &stride);

  /// Keys that a direct one weighs the values of at a time: these stay in the L1.
  static constexpr int64_t kDirectChunk = 32;
  KernelBuilder &kernel;
  AttentionLayout layout;
  Visibility visibility;
  const Type &number;                      // that all is computed in
  std::unique_ptr<AttentionKernel> direct; // what few queries take instead
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_ATTENTION_KERNEL_H
