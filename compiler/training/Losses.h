// Losses: the mean error of a model's output beside labels, and its derivative in closed form.
#ifndef HEDDLE_TRAINING_LOSSES_H
#define HEDDLE_TRAINING_LOSSES_H

#include "compiler/grad/Maker.h"
#include "compiler/training/Recipe.h"

namespace heddle::training {

/// "cross_entropy" of logits and i64 classes (softmax), "nll" of log-probabilities and classes,
/// "bce" of probabilities, "bce_with_logits", "mse", "mae" and "huber" of numbers and numbers of
/// the output's type, "output": the output, one number, is the loss. All are means over all labels
/// that count, as PyTorch's.
llvm::ArrayRef<llvm::StringRef> lossNames();

/// The type of the labels that belong to an output; null if the loss has none.
llvm::Expected<mlir::Type> labelsType(const Recipe &recipe, mlir::Value output);

struct Loss {
  mlir::Value value;    // one number of the output's type
  mlir::Value gradient; // the value's, with respect to the output
};
/// `labels` have the type that labelsType says. Labels out of range fail in the run.
Loss makeLoss(grad::Maker &maker, const Recipe &recipe, mlir::Value output, mlir::Value labels);

} // namespace heddle::training

#endif // HEDDLE_TRAINING_LOSSES_H
