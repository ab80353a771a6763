// Scorer: what a cost model says of the candidates of one group.
#ifndef HEDDLE_LEARN_SCORER_H
#define HEDDLE_LEARN_SCORER_H

#include "compiler/learn/Model.h"
#include "compiler/plan/Chooser.h"

namespace heddle::learn {

struct Scored {
  plan::Choice choice;
  std::vector<double> features;
  double logarithm = 0, outside = 0; // as Model::Scores has them
};

/// Scores candidates for a group with constant sizes.
class Scorer {
public:
  Scorer(Model &model, graph::GroupOp group, const program::Machine &machine)
      : model(model), group(group), machine(machine), features(featuresOf(group)) {}

  /// Asks the model for the scores of candidates whose features are set.
  llvm::Error score(std::vector<Scored> &some);
  llvm::Expected<std::vector<Scored>> scored(llvm::ArrayRef<plan::Choice> choices);

private:
  std::vector<double> featuresOfChoice(const plan::Choice &choice);

  Model &model;
  graph::GroupOp group;
  const program::Machine &machine;
  GroupFeatures features;
};

/// Whether a cost model's word on a card is asked for: one of a schedule with knobs. Others,
/// library calls and kernels that are written by hand, are told apart by running them.
bool isJudged(const warehouse::Card &card);

/// Candidates of the card from all that its knobs allow for so many workers: all of them, or `most`
/// that follow from the seed.
std::vector<plan::Choice> productOf(const warehouse::Card &card, int64_t workers, size_t most,
                                    uint64_t seed);

} // namespace heddle::learn

#endif // HEDDLE_LEARN_SCORER_H
