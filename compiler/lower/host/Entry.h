// Entry: what a call computes before the run: the symbols that values of inputs are
// (heddle_program_bind), and the sizes of the arena and of outputs, checked (heddle_program_sizes).
#ifndef HEDDLE_LOWER_HOST_ENTRY_H
#define HEDDLE_LOWER_HOST_ENTRY_H

#include "compiler/lower/host/Sizes.h"
#include "compiler/lower/host/Writer.h"

namespace heddle::lower {

class Entry {
public:
  Entry(mlir::func::FuncOp model, program::Program &program, const Storage &storage,
        RowTables &tables)
      : model(model), program(program), storage(storage), tables(tables) {}

  /// `wanted` are sizes that heddle_program_run computes unchecked.
  void writeSizes(const EntrySizes &wanted);
  void writeBind();

private:
  void bindTotals(Writer &host, SizeCode &sizes, Value inputs, Value given);

  mlir::func::FuncOp model;
  program::Program &program;
  const Storage &storage;
  RowTables &tables;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_ENTRY_H
