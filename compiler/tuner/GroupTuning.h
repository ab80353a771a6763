// GroupTuning: one distinct group of a model, and what is known of its candidates.
#ifndef HEDDLE_TUNER_GROUPTUNING_H
#define HEDDLE_TUNER_GROUPTUNING_H

#include "compiler/records/GroupKey.h"
#include "compiler/records/RecordedChooser.h"
#include "compiler/trial/Group.h"
#include "compiler/tuner/Search.h"

namespace heddle::tuner {

/// Share of the model's time below which a group is not worth a trial.
constexpr double kLeastShare = 0.002;

struct GroupTuning {
  graph::GroupOp group;           // the first of those that are equal
  std::vector<std::string> names; // names of all equal groups
  records::GroupKey key;
  records::Record blank; // fields shared by all records of the group
  trial::Sizes sizes;    // sizes at which it is measured
  std::vector<warehouse::Offer> offers;
  plan::Choice base;      // of f32
  plan::Choice shortBase; // of bf16, by the rules if they choose that
  /// The cards with which factors may be rounded to bf16; null: the default form.
  std::set<const warehouse::Card *> shortCards;
  std::vector<records::Record> records; // those of this base and these sizes
  std::optional<Search> search;
  std::string problem;    // why it cannot be measured
  int64_t scored = 0;     // candidates, by a cost model
  std::string unscored;   // why it has scored none
  double baseSeconds = 0; // one run with the default choice
  int64_t measured = 0;   // candidates, now
  bool isDone = false;    // there is nothing left to try
  bool isJoint = false;   // it was tuned for several sizes; the records are of all of them

  /// Share of the model's time, unnormalised.
  double weight() const { return baseSeconds * static_cast<double>(names.size()); }
  /// The size at which a symbol is measured.
  int64_t sizeOf(const std::string &symbol) const;
  const records::Record *find(const plan::Choice &choice) const;
  /// Replaces what is known of the candidate.
  void keep(const records::Record &record);
  /// The candidates that look fastest and have not been measured at length.
  std::vector<plan::Choice> finalists() const;
  plan::Choice choiceOf(const records::Record &record) const;
  records::Record recordOf(const plan::Choice &choice) const;
};

/// The distinct groups below the module, with the default choice of each. `mayRound`: factors of
/// products may be bf16.
llvm::Expected<std::vector<std::unique_ptr<GroupTuning>>> worksOf(mlir::ModuleOp module,
                                                                  const warehouse::Warehouse &cards,
                                                                  const program::Machine &machine,
                                                                  bool mayRound);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_GROUPTUNING_H
