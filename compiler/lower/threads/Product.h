// Product: products and convolutions by blocks of threads.
//
// A block has a tile of the result. Step by step of the reduction, its threads copy pieces of both
// operands to shared memory, the next step's while they multiply this one's; then they put the sums
// there, so that what follows the product is computed for neighbours by neighbours.
#ifndef HEDDLE_LOWER_THREADS_PRODUCT_H
#define HEDDLE_LOWER_THREADS_PRODUCT_H

#include "compiler/lower/Schedule.h"
#include "compiler/lower/threads/Operands.h"
#include "compiler/lower/threads/Tile.h"

namespace heddle::lower {

class BlockProduct {
public:
  BlockProduct(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), isShort(schedule.isShort) {}

  /// Fails where no such product is what `results` follow from. Writes no code.
  mlir::LogicalResult prepare(llvm::ArrayRef<Value> results);
  /// The phase that computes the results, and stores them, or gives them to `store`.
  void emit();
  std::function<void(Elements &, Value result, Value value, llvm::ArrayRef<Index> place)> store;

private:
  /// The part of the result that a task has.
  struct Task {
    Value matrix, firstRow, firstColumn;
    llvm::SmallVector<Slot> left, right;
  };

  void chooseTile();
  Task taskOf(Elements &e, Value number);
  void keepRows(Elements &e, const Task &task);
  Indices rowOf(Elements &e, const Task &task, Value line);
  /// The elements of the piece of a step; zeros beyond the operands.
  Values load(Elements &e, const Task &task, Value step);
  void keep(const Task &task, Values values, Value stage);
  void emitTile(Elements &e, const Task &task);
  bool canFetch() const { return shortLeft && operands->hasShortRight(); }
  void packRight();
  void fetch(Elements &e, const Task &task, Value step, Value piece);
  Values emitFetched(Elements &e, const Task &task);
  Values emitStaged(Elements &e, const Task &task);
  void emitResults(Elements &e, const Task &task, mlir::ValueRange sums);
  void emitResult(Elements &e, const Task &task, Value line, Value column, Value from);
  Value below(Value number, const Dim &extent, int64_t size);
  Value guardedBy(Elements &e, Value isThere, llvm::function_ref<Value()> value);

  /// Columns of each part that a tile has; what is left of it is idle.
  int64_t partColumns() const { return form.columns / product->parts; }

  KernelBuilder &kernel;
  mlir::Block *group;
  llvm::SmallVector<Value> results;
  std::optional<mechanism::Product> product;
  std::optional<ProductOperands> operands;
  std::optional<Team> team;
  Type sum;
  const bool isShort;  // factors are rounded to bf16
  Value shortLeft;     // the left operand, where its pieces can be fetched
  int64_t packed = -1; // the right one then, a constant of the kernel
  TileForm form = {};  // of no columns: none serves
  std::unique_ptr<ProductTile> tile;
  Value memory; // of the block: pieces, then the sums
  Value places; // the indices of the tile's rows, where they are several
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_THREADS_PRODUCT_H
