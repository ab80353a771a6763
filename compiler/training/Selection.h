// Selection: which constants of a model are trained, and which it only keeps statistics in.
#ifndef HEDDLE_TRAINING_SELECTION_H
#define HEDDLE_TRAINING_SELECTION_H

#include "compiler/graph/Graph.h"
#include "compiler/training/Recipe.h"

namespace heddle::training {

struct Weight {
  std::string name;
  mlir::Value value; // the constant; later the input that replaces it
};

struct Selection {
  std::vector<Weight> trained, statistics;
};

/// Selects initializers that `loss` follows from. A number alone is trained only if the recipe asks
/// for it by name, since exporters write the constants of formulas this way. Refuses names that the
/// model does not have, and weights that are no floating-point numbers.
llvm::Expected<Selection> selectWeights(mlir::Block &body, mlir::Value loss, const Recipe &recipe);

} // namespace heddle::training

#endif // HEDDLE_TRAINING_SELECTION_H
