// Weights: which constants of a model it was trained for, and what they become in a step.
#ifndef HEDDLE_GRAPH_EDIT_WEIGHTS_H
#define HEDDLE_GRAPH_EDIT_WEIGHTS_H

#include "llvm/ADT/StringRef.h"

namespace heddle::graph {

/// Attribute of a constant: its initializer's name.
inline constexpr llvm::StringLiteral kWeight = "graph.weight";
/// Attribute of such a constant: it holds the running mean or variance of a normalisation.
inline constexpr llvm::StringLiteral kStatistics = "graph.statistics";
/// Attribute of a result of @main: the name of the weight whose next value it is.
inline constexpr llvm::StringLiteral kUpdates = "graph.updates";

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_WEIGHTS_H
