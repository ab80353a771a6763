// ModelGuidedSearch: a search that a cost model leads. The model scores all that the knobs of a
// group's cards allow, from the features that records of the group would have, so that it is asked
// what it has learned.

#include "compiler/learn/GroupText.h"
#include "compiler/learn/Scorer.h"
#include "compiler/tuner/Tuning.h"

using namespace mlir;

namespace heddle::tuner {

using plan::Choice;

// Candidates of one card that are scored: at 30 us each, less than the measurement of one.
static constexpr size_t kScored = 6000;
// Least expected saving, as a share of the whole model's time, that is worth a measurement.
static constexpr double kWorth = 5e-4;

static std::vector<int64_t> sizesOf(const GroupTuning &work) {
  std::vector<int64_t> sizes;
  for (const std::string &symbol : work.key.symbols)
    sizes.push_back(work.sizeOf(symbol));
  return sizes;
}

/// Keeps the search local if the model cannot be asked. `whole` is the model's time: a group's
/// share of it decides how much is measured of it.
llvm::Error Tuner::follow(GroupTuning &work, double whole) {
  auto module = learn::parseGroup(*planned.context, work.key.text);
  if (!module)
    return module.takeError();
  learn::setSizes(**module, sizesOf(work));
  graph::GroupOp group = learn::groupOf(**module);
  if (!group || !estimate::hasConstantSizes(group)) {
    work.unscored = "its sizes are known at run time only";
    return llvm::Error::success();
  }
  std::vector<Choice> choices{work.base};
  for (const warehouse::Offer &offer : work.offers)
    if (offer.isOffered() && learn::isJudged(*offer.card)) {
      auto product = learn::productOf(*offer.card, threads, kScored, seedOf(work));
      llvm::append_range(choices, product);
      if (work.shortCards.count(offer.card))
        llvm::append_range(choices, llvm::map_range(product, records::shortened));
    }
  if (choices.size() == 1) {
    work.unscored = "none of its cards has knobs to choose";
    return llvm::Error::success();
  }
  program::Machine machine = planned.machine;
  machine.workers = threads;
  auto scored = learn::Scorer(*model, group, machine).scored(choices);
  if (!scored) {
    work.unscored = llvm::toString(scored.takeError());
    return llvm::Error::success();
  }
  std::vector<Favourites::Candidate> candidates;
  const learn::Scored &base = scored->front();
  for (const learn::Scored &each : ArrayRef(*scored).drop_front())
    if (each.outside <= base.outside && std::isfinite(each.logarithm - base.logarithm))
      candidates.push_back({each.choice, each.logarithm - base.logarithm});
  work.scored = static_cast<int64_t>(candidates.size());
  if (candidates.empty())
    work.unscored = "all are outside of what the model has learned from";
  else
    work.search->follow(
        Favourites(candidates, work.base, {options.candidates, kWorth * whole / work.weight()}));
  return llvm::Error::success();
}

} // namespace heddle::tuner
