// Rounded: what candidates of bf16 are held against: a group whose factors are rounded by ops of
// their own, before products of f32. These round alike and sum in another order, so that results
// are as close as those of f32, unless kernels may differ in a factor before it is rounded.
#ifndef HEDDLE_TRIAL_ROUNDED_H
#define HEDDLE_TRIAL_ROUNDED_H

#include "compiler/reference/Tensor.h"
#include "compiler/trial/Group.h"

namespace heddle::trial {

struct RoundedGroup {
  mlir::OwningOpRef<mlir::ModuleOp> module; // the ops of the group, without it
  /// Results beside those of the group: for each factor that kernels may differ in, the sums of
  /// absolute products that it enters.
  size_t bounds = 0;
};

/// Makes one of the only group of a module, which stays as it is.
RoundedGroup roundedFactors(mlir::ModuleOp module);

/// How far results may be off for their `bounds`: such a factor may be rounded to the other
/// neighbour, 2^-7 of it away, and attention's weights are rounded before they are divided by
/// their sum. What follows a product is taken to magnify no error.
double slackOf(llvm::ArrayRef<reference::Tensor> bounds);

} // namespace heddle::trial

#endif // HEDDLE_TRIAL_ROUNDED_H
