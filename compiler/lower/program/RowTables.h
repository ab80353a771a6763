// RowTables: the arrays that all ragged kernels of a program share (CoRa's prelude, Fegade et al.,
// MLSys 2022, section 5): where each row of a tensor begins, and how the work of a kernel is spread
// over rows. They are made once a run, from the lengths.
//
// Memory: the lengths; then for each expression its sums over the rows before each row, of one more
// entry than there are rows; then the greatest values of others. All i64.
#ifndef HEDDLE_LOWER_PROGRAM_ROWTABLES_H
#define HEDDLE_LOWER_PROGRAM_ROWTABLES_H

#include "compiler/lower/Kernel.h"

namespace heddle::lower {

/// A group as that of one row, with sizes of rows as plain symbols: what its kernel is made of.
class RowGroup {
public:
  RowGroup(graph::GroupOp group, llvm::StringRef of);
  graph::GroupOp group() { return copy; }
  /// Gives the kernel the values of the whole model instead, and its temporaries room for all rows.
  void restore(Kernel &kernel) const;

private:
  std::string of;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  graph::GroupOp copy;
  llvm::DenseMap<Value, Value> original;
};

class RowTables {
public:
  RowTables(mlir::func::FuncOp model,
            const std::map<mlir::Operation *, std::shared_ptr<Kernel>> &kernels);

  graph::RowLengthsOp lengths; // null if the model is not ragged
  std::string of() { return lengths.getOf().str(); }
  Dim rows() { return Dim::symbol(lengths.getOf()); }

  std::vector<Dim> sums;     // over rows
  std::vector<Dim> greatest; // of rows
  std::vector<Dim> totals;   // products whose sums over all rows are symbols
  int64_t sumOf(const Dim &ofRow) const;
  int64_t greatestOf(const Dim &ofRow) const;
  Dim bytes();

  // Sizes that a kernel of rows needs of the tables.
  static Dim elementsOfRow(Value tensor, llvm::StringRef of);
  /// Tasks of a row; none if its sizes are those of another version.
  static Dim tasksOf(const Kernel &kernel, const Phase &phase);
  /// The work of a row's tasks, a multiple of their number.
  static Dim workOf(const Kernel &kernel, const Phase &phase);

private:
  void add(std::vector<Dim> &to, const Dim &dim);
  void addTotals(const Dim &dim);
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_PROGRAM_ROWTABLES_H
