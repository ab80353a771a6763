// Optimizers: one update of one weight. Formulas: PyTorch's torch.optim; Lion: Chen et al.,
// Symbolic Discovery of Optimization Algorithms (2023), Algorithm 2.
#ifndef HEDDLE_TRAINING_OPTIMIZERS_H
#define HEDDLE_TRAINING_OPTIMIZERS_H

#include "compiler/grad/Maker.h"
#include "compiler/training/Recipe.h"

namespace heddle::training {

struct Setting {
  llvm::StringRef name;
  double otherwise; // its default
  Range range;
};

/// Numbers that all weights share, computed once a step; each of type f32 or f64 as the weights'.
struct Shared {
  mlir::Value rate;  // the learning rate
  mlir::Value count; // number of updates, this one included, f64
};

/// A weight, its gradient and its states, of one type.
struct Update {
  const Recipe &recipe;
  double weightDecay;
  Shared shared;
  mlir::Value weight, gradient;
  llvm::SmallVector<mlir::Value, 2> states;
};
/// Computes the next weight and states in place of those.
using Rule = void (*)(grad::Maker &, Update &);

struct Optimizer {
  llvm::StringRef name;
  llvm::SmallVector<Setting> settings;
  llvm::SmallVector<llvm::StringRef> states; // each weight's; they begin with zeros
  Rule rule;
};

const Optimizer *findOptimizer(llvm::StringRef name); // null: there is none
llvm::ArrayRef<llvm::StringRef> optimizerNames();

} // namespace heddle::training

#endif // HEDDLE_TRAINING_OPTIMIZERS_H
