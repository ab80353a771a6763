// Attention: what attentions by blocks of threads have in common: sizes, places of elements, and
// how results are stored.
#ifndef HEDDLE_LOWER_THREADS_ATTENTION_H
#define HEDDLE_LOWER_THREADS_ATTENTION_H

#include "compiler/lower/Schedule.h"
#include "compiler/lower/threads/Tile.h"
#include "compiler/mechanism/attention/Attention.h"

namespace heddle::lower {

class BlocksOfAttention {
protected:
  BlocksOfAttention(KernelBuilder &kernel, mlir::Block *group) : kernel(kernel), group(group) {}

  /// Fails where the group is no attention whose values blocks have registers for.
  mlir::LogicalResult read();
  /// The phase of these blocks; `prepare` says where shared memory is.
  void emitBlocks(int64_t threads, llvm::function_ref<void()> prepare,
                  llvm::function_ref<void(Elements &)> body);
  /// Stores the results of the block's rows. `sumsAt` gives a sum of the second product, and the
  /// sum of the row's exponentials that divides it.
  using SumsAt = llvm::function_ref<std::pair<Value, Value>(Value row, Value column)>;
  void storeResults(Elements &e, SumsAt sumsAt);
  /// Stores results whose sums are in padded lines of memory, those of exponentials in `factors`.
  void storeResults(Elements &e, Value sums, Value factors, int64_t columnsOfLine);
  /// Blocks of all rows, with each part of the keys.
  Dim blocks() const { return batches * queries.ceilDiv(Dim(rows)) * Dim(keyParts); }

  Value guardedBy(Elements &e, Value isThere, double otherwise, llvm::function_ref<Value()> value);
  void bindNumber(Elements &e, Value tensor, Value value);
  /// The query of a row of the block; rows after the last one are that one again.
  Value rowNumber(Value row);
  /// An element of an operand of a product, 0 beyond these limits.
  Value operandAt(Elements &e, graph::MatmulOp product, unsigned operand, Value row, Value column,
                  Value isThere);
  /// The place of a score in a tensor whose rows are those of the scores.
  Indices placeIn(Elements &e, Value tensor, Value row, Value column);
  /// The number of a score, or `otherwise` where there is no such key.
  Value valueAt(Elements &e, Value tensor, Value row, Value key, double otherwise = 0);
  Value numberOf(double value) { return kernel.code().constantOf(number, value); }
  /// As long as a row has no key, any number is the largest.
  Value baseOf(Value largest);

  static constexpr int64_t kKeys = 64; // of a tile
  static constexpr double kLowest = -std::numeric_limits<double>::infinity();

  KernelBuilder &kernel;
  mlir::Block *group;
  mechanism::AttentionParts parts;
  Type number;
  Dim batches, queries, keys, depth, columns;
  int64_t rows = 64;    // of a block
  int64_t keyParts = 1; // that blocks share the keys of a row out in
  std::optional<Team> team;
  Value batch, firstRow, keyPart; // of the task
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_THREADS_ATTENTION_H
