// Rows: groups whose reductions all reduce the same trailing dimensions (softmax, normalisations,
// plain sums of rows).
//
// Reductions that do not need each other are one pass over the row, in lanes; what a pass computes
// at cost (an exponential) and later passes want again is kept in the worker's scratch.
#ifndef HEDDLE_LOWER_ROWS_ROWS_H
#define HEDDLE_LOWER_ROWS_ROWS_H

#include "compiler/lower/threads/Team.h"

namespace heddle::lower {

class RowKernel {
public:
  /// `threads` of a row, on a device; 0: as many as its length asks for.
  RowKernel(KernelBuilder &kernel, mlir::Block *group, int64_t threads = 0)
      : kernel(kernel), group(group), threads(threads) {}

  /// Fails if the group has no reductions, or reductions of different dimensions. If `bound`
  /// is set, the caller computes, stores and binds that value. Writes no code.
  mlir::LogicalResult prepare(Value bound = {});
  /// Prepares some ops of the group, whose results `store` takes.
  mlir::LogicalResult prepare(llvm::ArrayRef<mlir::Operation *> some, llvm::ArrayRef<Value> made);
  /// Takes results that do not go to memory.
  std::function<void(Elements &, Value result, Value value, llvm::ArrayRef<Index> place)> store;
  /// Emits the whole phase, with so many rows in one task.
  void emit(int64_t rowsPerTask);
  /// Emits it with a row a task, by the threads of a team; `prepare` may bind what is computed.
  void emitTogether(llvm::function_ref<void(Elements &)> prepare = {});
  /// Emits all passes over one row.
  void emitRow(Elements &e, Value row) { emitRow(e, placeOf(e, row)); }
  void emitRow(Elements &e, const Indices &start);

  /// Scratch of the worker; emitRow takes it from this many bytes on.
  Dim scratchBytes() const;
  Dim scratchBegin = Dim(0);

  DimVector full;  // the dimensions of a row and those around it
  size_t kept = 0; // so many are around it
  Dim rowCount() const { return graph::elementCount(llvm::ArrayRef<Dim>(full).take_front(kept)); }
  Dim rowLength() const { return graph::elementCount(llvm::ArrayRef<Dim>(full).drop_front(kept)); }

private:
  /// Rows of a few elements (ShortRows.cpp).
  bool hasShortRows() const;
  void emitShortRows();
  void emitShortRows(Elements &e, Indices start, Value valid);
  void bindColumns(Elements &e, Value tensor, const Indices &start);
  /// A few rows that are shared out in pieces (LongRows.cpp).
  std::optional<size_t> axisOfPieces() const;
  void emitLongRows(size_t axis);
  void emitPieces(size_t axis, const Dim &work,
                  llvm::function_ref<void(Elements &, const Indices &start, Value task)> body);
  void bindTotals(Elements &e, llvm::ArrayRef<int64_t> totals, Value task);

  /// Softmax multiplies by one over the sum, where it has a quotient; the value that is bound.
  Value bindShares(Elements &e, mlir::Operation *sum, Value total);
  void storeColumns(Elements &e, Value output, llvm::ArrayRef<Indices> columns, Value valid);

  bool isRowValue(Value value) const;
  void chooseKeptValues();
  void chooseKeptInResult();
  Indices placeOf(Elements &e, Value row);
  Values walk(Elements &e, size_t dimension, Indices place, mlir::ValueRange initial,
              llvm::function_ref<Values(llvm::ArrayRef<Index>, mlir::ValueRange)> body,
              llvm::ArrayRef<mlir::Operation *> pass = {});
  /// The reductions in their order, by passes over the row: those of one do not need each other.
  std::vector<llvm::SmallVector<mlir::Operation *, 2>> passes();
  /// Results of the reductions of one pass; `visit` is called for each place.
  Values reduce(
      Elements &e, const Indices &start, llvm::ArrayRef<mlir::Operation *> pass,
      llvm::function_ref<void(llvm::ArrayRef<Index>)> visit = [](auto) {});
  Value scratchOf(size_t number);
  Value rowIndex(Elements &e, llvm::ArrayRef<Index> place);
  void emitOutputs(Elements &e, const Indices &start);
  bool dependsOn(Value value, Value wanted);

  KernelBuilder &kernel;
  mlir::Block *group;
  const int64_t threads;
  llvm::SmallVector<mlir::Operation *> ops, reductions;
  llvm::SmallVector<Value> results;
  llvm::SmallVector<Value> keptValues;
  Value keptInResult; // the one of them that lies in the memory of the only result
  Value given;
  std::optional<Team> team; // on a machine of threads
  /// A range of one axis of a row, if only a part of it is walked.
  struct Piece {
    size_t axis;
    Value low, high;
  };
  std::optional<Piece> piece;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_ROWS_ROWS_H
