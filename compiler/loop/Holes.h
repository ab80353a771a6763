// Holes: how a kernel that is written by hand sees its group.
//
// The kernel walks the loops and keeps the sums; what one element is, and what becomes of it, are
// holes that the compiler fills with the group's elementwise ops (PluS's +Code). All indices are
// i64, all elements of one type E:
//   product  read_a(batch, row, k) -> E, read_b(batch, k, column) -> E,
//            write(batch, row, column, E)
//   rows     read_0(row, i) -> E, read_1(row, i, fold 0) -> E ..., write(row, i, folds...)
// A hole whose name ends in _lanes reads or writes neighbours of the last index as a vector.
#ifndef HEDDLE_LOOP_HOLES_H
#define HEDDLE_LOOP_HOLES_H

#include "compiler/graph/Graph.h"
#include "compiler/loop/Fit.h"

namespace heddle::loop {

struct Hole {
  std::string name;
  int64_t indices, folds; // arguments: i64 each, then one E a fold
  bool isWrite;
  bool takesValue = false; // behind the indices
};

/// "kernel.product" and "kernel.rows".
bool isHandwritten(llvm::StringRef form);
std::vector<Hole> holesOf(llvm::StringRef form, int64_t folds);
/// Sizes that the kernel may ask for: "rows", "columns" ...
llvm::ArrayRef<llvm::StringLiteral> extentsOf(llvm::StringRef form);
/// How many folds a kernel of rows is written for: its text names read_0, read_1 ...
int64_t foldsNamedIn(llvm::StringRef text);

/// Products and folds of the ops, in order.
llvm::SmallVector<mlir::Operation *> decidersOf(llvm::StringRef form,
                                                llvm::ArrayRef<mlir::Operation *> ops);
Fit fitsHandwritten(llvm::StringRef form, llvm::ArrayRef<mlir::Operation *> ops, std::string &why);

} // namespace heddle::loop

#endif // HEDDLE_LOOP_HOLES_H
