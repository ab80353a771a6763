// Recompute: results of groups that are computed once more, right before some of their readers, so
// that they need not be in memory from the first reader to the last.
#ifndef HEDDLE_PLAN_RECOMPUTE_H
#define HEDDLE_PLAN_RECOMPUTE_H

#include "compiler/mechanism/Mechanism.h"

namespace heddle::plan {

struct Recomputation {
  std::string name;                 // name of the group that it makes
  std::string group;                // group of the recomputed results
  std::vector<int64_t> results;     // their numbers
  std::vector<int64_t> from;        // numbers of results that it reads instead of computing them
  std::vector<std::string> readers; // groups that read its results in place of the group's
};

/// Ops that compute some results of a group.
struct GroupPart {
  llvm::SmallVector<mlir::Operation *> ops; // in their order
  const mechanism::Mechanism *mechanism;    // for a group of these ops
};

/// The part of a group that computes `results`, where it may read its results `from`. None if no
/// kernel is known to be able to do that alone: a part is either per element, or has all ops of the
/// group that are not.
std::optional<GroupPart> partOf(graph::GroupOp group, llvm::ArrayRef<int64_t> results,
                                llvm::ArrayRef<int64_t> from);

/// Adds groups to the function's block, each before the first of its readers, or before the first
/// group that runs at once with that. A later one may be a reader of an earlier one. Returns what
/// is wrong with the first that cannot be added, by its name; nothing for success.
std::optional<std::pair<std::string, std::string>> recompute(mlir::func::FuncOp function,
                                                             llvm::ArrayRef<Recomputation> all);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_RECOMPUTE_H
