// Decision: makes the versions of a choice from the best choices at some sizes.
//
// A classification tree over the sizes of symbols (CART, with Gini's impurity), as DietCode's
// dispatcher is (Zheng et al., MLSys 2022), flattened into a plan's list.
#ifndef HEDDLE_RECORDS_DECISION_H
#define HEDDLE_RECORDS_DECISION_H

#include "compiler/plan/Chooser.h"

namespace heddle::records {

/// The best choice at these sizes of the symbols.
struct Point {
  std::vector<int64_t> sizes;
  std::optional<warehouse::KnobValues> knobs; // nullopt: the default choice
};

/// `base` with versions so that each point gets its knobs, as far as a tree of few leaves can
/// tell them apart; where it cannot, the default's.
plan::Choice decide(const plan::Choice &base, llvm::ArrayRef<std::string> symbols,
                    llvm::ArrayRef<Point> points);

/// Whether versions of the group's knobs may differ: what is packed of constants is stored once,
/// and a product by a constant has nothing to gain (bench/notes/2026-11-23-open-columns.md).
bool mayVary(graph::GroupOp group);

} // namespace heddle::records

#endif // HEDDLE_RECORDS_DECISION_H
