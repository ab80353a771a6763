// Typical: the sizes that symbols usually have, for choices between forms that are all right for
// any size: the work of a task, transformed tiles, the places of buffers.
#ifndef HEDDLE_GRAPH_TYPICAL_H
#define HEDDLE_GRAPH_TYPICAL_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

/// Attribute of a module: a dictionary of i64, the typical sizes of symbols by their names.
inline constexpr llvm::StringLiteral kTypicalAttr = "graph.typical";
/// Attribute of a module: a dictionary of i64, thresholds in place of their defaults
/// (estimate/Thresholds.h).
inline constexpr llvm::StringLiteral kThresholdsAttr = "graph.thresholds";

/// Value of a symbol without a typical size in the module.
inline constexpr int64_t kTypicalSize = 64;

/// The typical size of a symbol, as the module around `at` says; null for none.
std::optional<int64_t> typicalSymbol(mlir::Operation *at, llvm::StringRef symbol);
/// The size, if the module says the typical sizes of all its symbols.
std::optional<int64_t> knownTypicalSize(mlir::Operation *at, const Dim &dim);
/// The size with `other` for each symbol without a typical size in the module around `at`; at least
/// 0.
int64_t typicalSize(mlir::Operation *at, const Dim &dim, int64_t other = kTypicalSize);

/// Notes the typical sizes "seq=128" in the module; says what is wrong with one, "" for nothing.
std::string setTypicalSizes(mlir::ModuleOp module, llvm::ArrayRef<std::string> sizes);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_TYPICAL_H
