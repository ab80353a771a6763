// Step: a model becomes one step of its training: the loss, the derivatives of all weights, and
// their update, in one graph. Weights and what an optimiser remembers of them are inputs, and
// outputs of the same names, which a run may write in their place.
#ifndef HEDDLE_TRAINING_STEP_H
#define HEDDLE_TRAINING_STEP_H

#include "compiler/graph/Graph.h"
#include "compiler/training/Recipe.h"

namespace heddle::training {

// Inputs and outputs of a step besides the model's inputs, its labels and weights
// (docs/spec/training.md).
inline constexpr llvm::StringLiteral kRate = "train.learning_rate"; // f32
inline constexpr llvm::StringLiteral kStep = "train.step";          // i64: updates before this one
inline constexpr llvm::StringLiteral kLoss = "train.loss";
inline constexpr llvm::StringLiteral kNorm = "train.gradient_norm"; // before it is clipped

/// Makes of @main what the recipe's phase says. The module was imported with `marksWeights` and,
/// but for inference, as in training (onnx::ImportOptions).
llvm::Error makeStep(mlir::ModuleOp module, const Recipe &recipe);

} // namespace heddle::training

#endif // HEDDLE_TRAINING_STEP_H
