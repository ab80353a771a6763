// MemoryLimit: what a run takes, and plans that take no more than they may.
#ifndef HEDDLE_PIPELINE_MEMORYLIMIT_H
#define HEDDLE_PIPELINE_MEMORYLIMIT_H

#include "compiler/pipeline/Pipeline.h"
#include "compiler/plan/Recompute.h"

namespace heddle {

/// Bytes of one run, with typical sizes where they are open.
struct MemoryNeed {
  int64_t inputs = 0;
  int64_t outputs = 0; // but for those that have an input's memory
  int64_t weights = 0; // the artefact's
  int64_t arena = 0;   // values between kernels

  int64_t total() const { return inputs + outputs + weights + arena; }
};

/// Memory of the program that `main` was lowered into.
MemoryNeed memoryOf(mlir::func::FuncOp main, const program::Program &program);

struct MemoryGoal {
  int64_t limit = 0; // bytes that a run may take; 0: none
  double share = 0;  // share of a run's time that saving memory may take if no limit asks for it
};

/// Makes groups of the planned graph compute results again (plan/Rematerialise.h). `again` has what
/// they are then, and `choose` chooses for all groups anew. A plan that already says what is
/// computed again is only held against the limit.
llvm::Error arrangeMemory(Compiled &compiled, MemoryGoal goal,
                          std::vector<plan::Recomputation> &again,
                          llvm::function_ref<llvm::Error()> choose);

} // namespace heddle

#endif // HEDDLE_PIPELINE_MEMORYLIMIT_H
