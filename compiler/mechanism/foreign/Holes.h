// Holes: how a kernel that is written by hand sees its group.
//
// The kernel walks the loops and keeps the sums; what one element is, and what becomes of it, are
// holes that the compiler fills with the group's elementwise ops (PluS's +Code). All indices are
// i64, all elements of one type E:
//   product  read_a(batch, row, k) -> E, read_b(batch, k, column) -> E,
//            write(batch, row, column, E)
//   rows     read_0(row, i) -> E, read_1(row, i, fold 0) -> E ..., write(row, i, folds...)
// A hole whose name ends in _lanes reads or writes neighbours of the last index as a vector.
#ifndef HEDDLE_MECHANISM_FOREIGN_HOLES_H
#define HEDDLE_MECHANISM_FOREIGN_HOLES_H

#include "compiler/mechanism/Mechanism.h"

namespace heddle::mechanism {

struct Hole {
  std::string name;
  int64_t indices, folds; // arguments: i64 each, then one E a fold
  bool isWrite;
  bool takesValue = false; // behind the indices
};

std::vector<Hole> holesOf(const Mechanism &mechanism, int64_t folds);
/// Sizes that the kernel may ask for: "rows", "columns" ...
llvm::ArrayRef<llvm::StringLiteral> extentsOf(const Mechanism &mechanism);
/// How many folds a kernel of rows is written for: its text names read_0, read_1 ...
int64_t foldsNamedIn(llvm::StringRef text);

/// Products and folds of the ops, in order.
llvm::SmallVector<mlir::Operation *> decidersOf(const Mechanism &mechanism, Ops ops);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_FOREIGN_HOLES_H
