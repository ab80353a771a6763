// Rounding: casts that end an op which was computed in a wider type.
#ifndef HEDDLE_GRAPH_EDIT_ROUNDING_H
#define HEDDLE_GRAPH_EDIT_ROUNDING_H

#include "llvm/ADT/StringRef.h"

namespace heddle::graph {

/// Attribute of a cast: the model does not ask for it, so that only strict arithmetic rounds here.
inline constexpr llvm::StringLiteral kOwnRounding = "graph.own_rounding";

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_ROUNDING_H
