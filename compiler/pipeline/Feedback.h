// Feedback: what mechanisms say of groups that were made for them, before any code is written.
#ifndef HEDDLE_PIPELINE_FEEDBACK_H
#define HEDDLE_PIPELINE_FEEDBACK_H

#include "compiler/partition/Partition.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/plan/Plan.h"

namespace heddle {

/// Adds the groups that no mechanism can carry out as the partitioner made them, or that it should
/// not have made, to those of `groups` that it shall not make again; whether there are any. A
/// plan's own groups stay as they are where that is possible at all, however slow; so does what
/// computes results of others `again`.
llvm::Expected<bool> findRefused(Compiled &compiled, bool isAdvised,
                                 llvm::ArrayRef<plan::Recomputation> again,
                                 partition::Options &groups);

/// Groups that are not split any further and that their mechanisms do not serve all the same are
/// computed element by element, and the plan `made` says so. A card that a given plan names is no
/// such choice of ours.
llvm::Error settleGroups(Compiled &compiled, plan::Plan &made);

/// Refuses a plan whose versions would store several of what they share, which is stored once.
llvm::Error checkVersions(Compiled &compiled, const plan::Plan &made);

} // namespace heddle

#endif // HEDDLE_PIPELINE_FEEDBACK_H
