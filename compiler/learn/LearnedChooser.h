// LearnedChooser: what a cost model finds fastest for a group, without measuring anything; what
// another chooser says where the model knows too little.
#ifndef HEDDLE_LEARN_LEARNEDCHOOSER_H
#define HEDDLE_LEARN_LEARNEDCHOOSER_H

#include "compiler/learn/Model.h"
#include "compiler/plan/Chooser.h"

#include <functional>

namespace heddle::learn {

/// A group's choice and its reason.
struct Decision {
  std::string kept;               // why the other chooser's choice stays; "" if it does not
  plan::Choice choice, otherwise; // the model's, and the other chooser's
  double speedup = 1;             // predicted, over the other choice
  /// Features that differ between the two choices: the factor by which the predicted time grows if
  /// one of them is as in the other choice. The largest first.
  std::vector<std::pair<std::string, double>> moved;
};

/// Orders the warehouse's offers only. The other choice stays if the group's sizes are not all
/// constant, if a feature is outside of the training data, if the promised speed-up is less than
/// kPromise, if the model fails, and for groups that `isMeasured`; and no candidate is taken that a
/// roofline finds clearly worse.
class LearnedChooser : public plan::Chooser {
public:
  /// The best of many predictions is one of those that err: less than the promise is kept, and
  /// nothing of small ones (bench/notes/2026-11-25-cost-models.md).
  static constexpr double kPromise = 1.2;

  using IsMeasured = std::function<llvm::Expected<bool>(graph::GroupOp)>;
  /// `mayRound`: candidates may have factors of bf16.
  LearnedChooser(Model &model, plan::Chooser &otherwise, IsMeasured isMeasured,
                 bool mayRound = false)
      : model(model), otherwise(otherwise), isMeasured(std::move(isMeasured)), mayRound(mayRound) {}
  llvm::Expected<plan::Choice> choose(graph::GroupOp group, llvm::ArrayRef<warehouse::Offer> offers,
                                      const program::Machine &machine) override;

  /// The last decision for each group, by its name.
  const std::map<std::string, Decision> &decisions() const { return made; }

private:
  llvm::Expected<Decision> decide(graph::GroupOp group, llvm::ArrayRef<warehouse::Offer> offers,
                                  const program::Machine &machine, const plan::Choice &base);

  Model &model;
  plan::Chooser &otherwise;
  IsMeasured isMeasured;
  bool mayRound;
  std::map<std::string, Decision> made;
};

} // namespace heddle::learn

#endif // HEDDLE_LEARN_LEARNEDCHOOSER_H
