// Sizes: other sizes in the types and attributes of ops that are already there.
#ifndef HEDDLE_GRAPH_EDIT_SIZES_H
#define HEDDLE_GRAPH_EDIT_SIZES_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

/// Replaces each size in all types and attributes of the op and below it.
void replaceDims(mlir::Operation *root, llvm::function_ref<Dim(const Dim &)> replacement);
/// As replaceDims, of each symbol for which `replacement` has a size.
void substituteSymbols(mlir::Operation *root,
                       llvm::function_ref<std::optional<Dim>(llvm::StringRef)> replacement);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_SIZES_H
