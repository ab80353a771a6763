// RowBlocks: whether a ragged batch may be run as blocks of rows, one after the other: the tensors
// between kernels then stay in the cache, and the arena holds those of one block.
#ifndef HEDDLE_LOWER_PROGRAM_ROWBLOCKS_H
#define HEDDLE_LOWER_PROGRAM_ROWBLOCKS_H

#include "compiler/lower/program/Storage.h"

namespace heddle::lower {

/// Blocks as the runtime is told of them; none unless each row is computed alone and has its place
/// in each result.
program::RowBlocks rowBlocksOf(mlir::func::FuncOp model, RowTables &tables, const Storage &storage);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_PROGRAM_ROWBLOCKS_H
