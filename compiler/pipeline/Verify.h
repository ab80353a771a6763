// Verify: what holds of a module between two stages, beyond what each op says of itself.
#ifndef HEDDLE_PIPELINE_VERIFY_H
#define HEDDLE_PIPELINE_VERIFY_H

#include "compiler/Prelude.h"

namespace heddle {

/// Holds a module to the verifiers of its ops; of a graph, also @main to graph/Function.h and the
/// schedules of groups to mechanism/Schedules.h. Each message is at the op that it is of.
mlir::LogicalResult verifyStage(mlir::ModuleOp module);

/// All messages as an error: an internal one, since a stage of ours has made the module. `when`
/// says where: "after partition".
llvm::Error requireValid(mlir::ModuleOp module, llvm::StringRef when);

} // namespace heddle

#endif // HEDDLE_PIPELINE_VERIFY_H
