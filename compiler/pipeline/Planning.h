// Planning: from the simplified graph to groups with a card and knobs each.
#ifndef HEDDLE_PIPELINE_PLANNING_H
#define HEDDLE_PIPELINE_PLANNING_H

#include "compiler/pipeline/Stages.h"
#include "compiler/warehouse/Warehouse.h"

namespace heddle {

/// "" if the card is for targets of this kind, and the target, and this machine where the card's
/// kernel is compiled, have what it needs.
std::string whyMissing(const warehouse::Card &card, const target::Target &target);

/// The cards that may serve what is compiled: others, as its options have it or since what they
/// need is not there, are withdrawn.
llvm::Expected<warehouse::Warehouse> loadCards(const Compiled &compiled);

/// The fingerprint of the graph of `compiled`, which is as it was imported, and the plan of the
/// options.
llvm::Error readGiven(Compiled &compiled, const CompileOptions &options);

/// Whether the simplified graph has all nodes to which the given plan gives a layout or integers.
llvm::Error checkNodes(const Compiled &compiled);

/// Groups, then cards and knobs of all groups: what the given plan says, else what tuning has
/// found, else what the cards and the default chooser find best. Where that makes groups that
/// cannot be carried out, or that cost more than their parts, the graph is split again without them
/// (Apollo's feedback). Replaces the graph of `compiled`, whose context, target and machine are
/// set, and fills in its plan and feedback.
llvm::Error planGroups(const CompileOptions &options, Compiled &compiled, Stages &stages);

} // namespace heddle

#endif // HEDDLE_PIPELINE_PLANNING_H
