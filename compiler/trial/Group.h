// Group: a group of ops as a module of its own, with sizes and numbers that are drawn for it.
#ifndef HEDDLE_TRIAL_GROUP_H
#define HEDDLE_TRIAL_GROUP_H

#include "compiler/graph/Graph.h"

#include <random>

namespace heddle::trial {

using Random = std::mt19937;
using Sizes = std::map<std::string, int64_t>; // keyed by symbol

/// The one group of a module.
graph::GroupOp groupOf(mlir::ModuleOp module);

/// Replaces symbols by these sizes, in all types and attributes.
void fixSizes(mlir::ModuleOp module, const Sizes &sizes);

/// A context that can read groups and cards.
std::unique_ptr<mlir::MLIRContext> makeContext();

std::string textOf(mlir::ModuleOp module);

} // namespace heddle::trial

#endif // HEDDLE_TRIAL_GROUP_H
