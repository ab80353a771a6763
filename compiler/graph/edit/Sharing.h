// Sharing: outputs that may have the memory of an input, so that a run updates it in place.
#ifndef HEDDLE_GRAPH_EDIT_SHARING_H
#define HEDDLE_GRAPH_EDIT_SHARING_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

/// Attribute of a result of @main: an i64, the number of the input whose memory it may have.
inline constexpr llvm::StringLiteral kShares = "graph.shares";

/// Attribute of an argument of @main, a unit: a buffer that the run writes, of which one scatter
/// makes what all others read.
inline constexpr llvm::StringLiteral kBuffer = "graph.buffer";

/// Notes the pairs "new_state=state" of an output and an input at @main; says what is wrong with
/// one, "" for nothing. Both have one type, and an input belongs to at most one output.
std::string setShared(mlir::ModuleOp module, llvm::ArrayRef<std::string> pairs);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_SHARING_H
