// Versions: knobs of a group that depend on its sizes.
//
// A choice may have several settings of its card's knobs, in a list; a run takes the first that is
// for its sizes. A decision tree of `size <= bound` is such a list: the leaves from left to right,
// each with the bounds of the left turns on its way.
#ifndef HEDDLE_PLAN_VERSIONS_H
#define HEDDLE_PLAN_VERSIONS_H

#include "compiler/plan/Chooser.h"

namespace heddle::plan {

/// The fault of the sizes that a version of the group is for; "" for none. They are expressions of
/// the symbols in the group's types, which are known wherever it is launched.
std::string whyNoCondition(graph::GroupOp group, const std::map<std::string, int64_t> &when);

/// Leaves the choice on the group, where lowering reads it.
llvm::Error applyChoice(const Choice &choice, graph::GroupOp group);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_VERSIONS_H
