// Partition: which ops share a kernel.
#ifndef HEDDLE_PARTITION_PARTITION_H
#define HEDDLE_PARTITION_PARTITION_H

#include "compiler/graph/Graph.h"

namespace heddle::partition {

/// What a group is built around; the chooser offers cards for it.
enum class Kind { Pointwise, Rows, Contraction, Attention, Window, Serial };
llvm::StringRef nameOf(Kind kind);

/// Wraps the ops of every block below `function` into graph.group ops. `apart` names groups (by
/// their root's name) whose producers must not join them: how a plan undoes a fusion.
void partition(mlir::func::FuncOp function, const llvm::StringMap<bool> &apart = {});

std::unique_ptr<mlir::Pass> createPartitionPass();
void registerPartitionPasses();

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_PARTITION_H
