// Activations: what a model's derivative reads of its forward computation, stored in fewer bits.
#ifndef HEDDLE_TRAINING_ACTIVATIONS_H
#define HEDDLE_TRAINING_ACTIVATIONS_H

#include "compiler/graph/Graph.h"

#include "llvm/ADT/DenseSet.h"

namespace heddle::training {

/// Makes every op of the block that is neither in `forward` nor in `exact` read floats of 32 bits
/// that ops of `forward` compute from the block's inputs as they are after rounding to `narrow`.
/// Ops of `forward` and `exact` read the values before rounding. Broadcast tensors, such as a mean,
/// are not rounded: they are small, and many elements depend on them.
void narrowActivations(mlir::Block &block, const llvm::DenseSet<mlir::Operation *> &forward,
                       const llvm::DenseSet<mlir::Operation *> &exact, mlir::FloatType narrow);

} // namespace heddle::training

#endif // HEDDLE_TRAINING_ACTIVATIONS_H
