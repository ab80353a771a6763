// Trial: a group of ops that a card is tried on, cut out into a program of its own.
#ifndef HEDDLE_CARDS_TRIAL_H
#define HEDDLE_CARDS_TRIAL_H

#include "compiler/trial/Group.h"
#include "compiler/warehouse/Card.h"

namespace heddle::cards {

using trial::fixSizes, trial::groupOf, trial::makeContext, trial::textOf;
using trial::Random, trial::Sizes;

/// A trial as text, since each compilation has a context of its own.
struct Trial {
  std::string name; // the group's
  std::string text; // a module with one func @main around one graph.group
  /// Whether its sizes are not those of the card's author: what has no meaning then proves nothing.
  bool isVariation = false;
};

/// Whether the interpreter takes a trial for some sizes.
using MayRun = llvm::function_ref<bool(const Trial &)>;

/// Takes the card's @example, else the groups of Inputs/NAME.mlir beside it that it is for. An
/// error if there are none. Arguments that are `heddle.constant` become constants. Sizes that are
/// numbers are tried with others, too, if the ops and the card take them.
llvm::Expected<std::vector<Trial>> trialsOf(const warehouse::Card &card, Random &random,
                                            MayRun mayRun);

} // namespace heddle::cards

#endif // HEDDLE_CARDS_TRIAL_H
