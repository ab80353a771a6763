// Sizes: what a group is at each of several sizes.
#ifndef HEDDLE_TUNER_JOINT_SIZES_H
#define HEDDLE_TUNER_JOINT_SIZES_H

#include "compiler/plan/Chooser.h"
#include "compiler/tuner/joint/Instances.h"
#include "compiler/tuner/joint/Joint.h"

namespace heddle::tuner {

/// What the group computes; symbols of which `instance` says nothing are `otherwise`.
Shape shapeAt(graph::GroupOp group, const Instance &instance, const cards::Sizes &others,
              int64_t otherwise);

/// The knobs that a run of these sizes takes.
warehouse::KnobValues knobsAt(const plan::Choice &choice, const cards::Sizes &sizes,
                              int64_t otherwise);

/// The first, the middle and the last of neighbours with equal knobs: what is confirmed there is
/// taken to hold between them.
std::vector<size_t> toConfirm(llvm::ArrayRef<warehouse::KnobValues> knobs);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_JOINT_SIZES_H
