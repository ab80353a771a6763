// Rows: ragged groups: lengths of rows, the tables that follow from them, and launches of kernels
// that compute one row at a time.
//
// A launch of all rows cuts their work, not their number, into equal parts: each worker finds by
// bisection the row where its part begins, and calls the kernel for each row, with pointers to the
// row's part of each tensor. It is what CoRa's thread remapping is for, without a permutation.
#ifndef HEDDLE_LOWER_HOST_ROWS_H
#define HEDDLE_LOWER_HOST_ROWS_H

#include "compiler/lower/host/Checks.h"
#include "compiler/lower/host/Launcher.h"

namespace heddle::lower {

/// Lengths of the rows of a ragged model, as an input gives them.
class Lengths {
public:
  Lengths(Writer &host, SizeCode &sizes, graph::RowLengthsOp op)
      : host(host), sizes(sizes), op(op) {}

  /// The length of a row, 0 if it is none, which ends the run.
  Value of(Value memory, Value row);

private:
  Values found(Value memory, Value row);
  Value isNonzero(Value memory, Value index);
  std::string wrongLength();

  Writer &host;
  SizeCode &sizes;
  graph::RowLengthsOp op;
};

class Rows {
public:
  Rows(Writer &host, SizeCode &written, Sizes &sizes, Memory &memory, Checks &checks,
       Launcher &launcher, RowTables &tables)
      : host(host), code(host.code), builder(host.builder), written(written), sizes(sizes),
        memory(memory), checks(checks), launcher(launcher), tables(tables) {}

  /// The tables, once the lengths are there. They are read again, so that what was checked before
  /// is held against what is found now: the caller may have changed them meanwhile.
  void writeTables();
  void launch(graph::GroupOp group, const Kernel &kernel);

private:
  std::vector<Check> checksOfRow();
  Value tableAt(Value table, Value rows, int64_t sum);
  mlir::func::FuncOp dispatcherOf(mlir::func::FuncOp target, const Kernel &kernel,
                                  const Phase &phase);

  Writer &host;
  Code &code;
  mlir::OpBuilder &builder;
  SizeCode &written;
  Sizes &sizes;
  Memory &memory;
  Checks &checks;
  Launcher &launcher;
  RowTables &tables;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_ROWS_H
