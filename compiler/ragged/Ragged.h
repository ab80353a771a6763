// Ragged: makes a model compute rows of different lengths without padding (CoRa, Fegade et al.,
// MLSys 2022).
//
// The promise: row b of each result, cut to its length, is what the model computes of row b alone,
// with the length as its size; elements beyond are 0. An op whose rows are separate therefore
// becomes the same op on ragged tensors (graph/ragged/Ragged.h). If it treats elements along the
// two dimensions alike, all rows become one long row, [1, total(seq(batch)), ...] (CoRa's fusion of
// variable loops): a dense tensor, for which every kernel and fusion is as good as before.
#ifndef HEDDLE_RAGGED_RAGGED_H
#define HEDDLE_RAGGED_RAGGED_H

#include "compiler/graph/Graph.h"
#include "compiler/support/Error.h"

namespace heddle::ragged {

/// Declares in an imported model what "batch:seq=lengths" says: the size `seq` is one of each index
/// along `batch`, and the input `lengths` has it. That is a vector of lengths, which becomes a new
/// input if there is none of the name, or a mask [batch, seq] of the model, whose rows are ones and
/// then padding. Inside of the model such a mask is all ones.
///
/// If it packs, a result [batch, seq, ...] of the model becomes [total(seq(batch)), ...], without
/// what is beyond the rows, and one more result, `row_offsets`, says where each row begins.
llvm::Error declare(mlir::ModuleOp module, llvm::StringRef text, bool packs = false);

/// Makes a simplified model ragged as it declares; refuses it, with the name of the node, if its
/// rows cannot be separated.
llvm::Error convert(mlir::ModuleOp module);

} // namespace heddle::ragged

#endif // HEDDLE_RAGGED_RAGGED_H
