// Chooser: what should be done with each group. The one place of the compiler that knows about
// speed.
//
// The warehouse says which cards may be applied, a chooser picks one and its knobs, and `choose`
// applies it and writes the plan.
#ifndef HEDDLE_PLAN_CHOOSER_H
#define HEDDLE_PLAN_CHOOSER_H

#include "compiler/plan/Plan.h"
#include "compiler/program/Machine.h"

namespace heddle::plan {

struct Choice {
  const warehouse::Card *card = nullptr; // none: the group's mechanism finds its numbers
  warehouse::KnobValues knobs;           // those that are missing have the card's default
  std::vector<Version> versions = {};    // with all knobs; the first that is for a run's sizes
  int64_t device = 0;                    // of the machine's
  bool isShort = false;                  // factors of products are rounded to bf16
  std::map<std::string, double> measured = {}; // what led to that, for the reader
  std::string whyPrecision = {};               // of a group that has a choice; "" for any other

  /// The mechanism that carries the group out; null if it names none.
  const mechanism::Mechanism *mechanismFor(graph::GroupOp group) const {
    return card ? card->mechanism : mechanism::of(group);
  }
};

/// Why the factors of the group's products cannot be rounded to bf16 with this choice; "" if they
/// can.
std::string whyNotShort(const Choice &choice, graph::GroupOp group,
                        const program::Machine &machine);

/// Rounds the factors of the group's products to bf16 if that can be done, and a roofline of the
/// choice's device gives it less time.
void choosePrecision(Choice &choice, graph::GroupOp group, const program::Machine &machine);

class Chooser {
public:
  virtual ~Chooser() = default;
  /// `offers`: all cards in their order, with those that were refused.
  virtual llvm::Expected<Choice> choose(graph::GroupOp group,
                                        llvm::ArrayRef<warehouse::Offer> offers,
                                        const program::Machine &machine) = 0;
};

/// The card of the highest priority, its knobs by rules of the machine and the extents.
class DefaultChooser : public Chooser {
public:
  llvm::Expected<Choice> choose(graph::GroupOp group, llvm::ArrayRef<warehouse::Offer> offers,
                                const program::Machine &machine) override;
};

/// Makes another one's choices, with factors rounded to bf16 where the mechanism can, and where a
/// roofline finds that it saves time.
class ShortChooser : public Chooser {
public:
  explicit ShortChooser(Chooser &choices) : choices(choices) {}
  llvm::Expected<Choice> choose(graph::GroupOp group, llvm::ArrayRef<warehouse::Offer> offers,
                                const program::Machine &machine) override;

private:
  Chooser &choices;
};

/// Makes a plan's choices; groups that it does not name are left to another chooser.
class PlanChooser : public Chooser {
public:
  PlanChooser(const Plan &plan, Chooser &otherwise) : plan(plan), otherwise(otherwise) {}
  llvm::Expected<Choice> choose(graph::GroupOp group, llvm::ArrayRef<warehouse::Offer> offers,
                                const program::Machine &machine) override;
  /// Whether every group of the plan is one of the function's, with the ops that the plan gives it,
  /// on a device that the machine has, and the plan was made for this model.
  llvm::Error check(mlir::func::FuncOp function, llvm::StringRef model,
                    const program::Machine &machine) const;

private:
  void checkOrder(mlir::func::FuncOp function,
                  llvm::function_ref<void(const GroupPlan &, const llvm::Twine &)> complain) const;

  const Plan &plan;
  Chooser &otherwise;
};

/// Offers, chooses and applies for every group below the function, and appends each to `plan`,
/// whose model and target stay as they are.
llvm::Error choose(mlir::func::FuncOp function, const warehouse::Warehouse &warehouse,
                   Chooser &chooser, const program::Machine &machine, Plan &plan);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_CHOOSER_H
