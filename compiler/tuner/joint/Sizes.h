// Sizes: what a group is at each of several sizes.
#ifndef HEDDLE_TUNER_JOINT_SIZES_H
#define HEDDLE_TUNER_JOINT_SIZES_H

#include "compiler/plan/Chooser.h"
#include "compiler/tuner/joint/Instances.h"
#include "compiler/tuner/joint/Joint.h"

namespace heddle::tuner {

/// The knobs that a run of these sizes takes.
warehouse::KnobValues knobsAt(const plan::Choice &choice, const trial::Sizes &sizes,
                              int64_t otherwise);

/// The group at each of the instances, for which the choice holds.
llvm::Expected<std::vector<JointPoint>> pointsOf(graph::GroupOp group, const plan::Choice &choice,
                                                 llvm::ArrayRef<Instance> instances,
                                                 const program::Machine &machine,
                                                 int64_t otherwise);

/// The first, the middle and the last of neighbours with equal knobs, and others so that no two are
/// farther apart than an eighth of all: what is confirmed there is taken to hold between them.
std::vector<size_t> toConfirm(llvm::ArrayRef<warehouse::KnobValues> knobs);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_JOINT_SIZES_H
