// Clone: copies of ops that may be beside the originals: sizes that they bind get names of their
// own.
#ifndef HEDDLE_GRAPH_EDIT_CLONE_H
#define HEDDLE_GRAPH_EDIT_CLONE_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

/// Operands, and what the op's regions use of the values around it.
llvm::SmallVector<mlir::Value> usedBy(mlir::Operation *op);

/// Copies in the given order at the builder's place; the mapping then holds the results.
llvm::SmallVector<mlir::Operation *>
cloneOps(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Operation *> ops, mlir::IRMapping &mapping);

/// A copy of the op that binds the names of sizes that the op has bound, so that it can come in its
/// place; the op binds others. The mapping then holds the results.
mlir::Operation *cloneToReplace(mlir::OpBuilder &builder, mlir::Operation *op,
                                mlir::IRMapping &mapping);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_CLONE_H
