// MatrixRule: when a product is computed in registers that hold matrices.
#ifndef HEDDLE_PLAN_MATRIXRULE_H
#define HEDDLE_PLAN_MATRIXRULE_H

#include "compiler/plan/Chooser.h"

namespace heddle::plan {

/// Makes the choice, which is for factors of f32, one of factors of bf16 and tiles of matrices, and
/// of another card if its own has none, where that saves time. False where nothing of that can be.
bool chooseMatrices(Choice &choice, graph::GroupOp group, llvm::ArrayRef<warehouse::Offer> offers,
                    const program::Machine &machine);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_MATRIXRULE_H
