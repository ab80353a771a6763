// LearnedChooser: a beam over the knobs of each card, two knobs at a time, since rows and columns
// of a tile share the registers: 300 candidates instead of the 4410 of a product's card.

#include "compiler/learn/LearnedChooser.h"

#include "compiler/learn/Scorer.h"

#include <cmath>
#include <set>

using namespace mlir;

namespace heddle::learn {

using plan::Choice;
using warehouse::Card;
using warehouse::KnobValues;

static constexpr size_t kBeam = 4;
static constexpr size_t kShown = 5; // features that are told

static bool isFaster(const Scored &a, const Scored &b) {
  return std::tie(a.logarithm, a.choice.knobs) < std::tie(b.logarithm, b.choice.knobs);
}

/// These knobs with all values of one knob, or of two.
static std::vector<Choice> expanded(ArrayRef<Scored> from, ArrayRef<warehouse::Knob> knobs) {
  std::vector<Choice> choices;
  std::set<KnobValues> seen;
  for (const Scored &each : from)
    for (int64_t first : knobs.front().domain)
      for (int64_t second : knobs.back().domain) {
        Choice choice = each.choice;
        choice.knobs[knobs.front().name] = first;
        choice.knobs[knobs.back().name] = second; // a single knob is both
        if (seen.insert(choice.knobs).second)
          choices.push_back(std::move(choice));
      }
  return choices;
}

/// Whether a roofline finds the candidate about as good as the other choice: it neither pads, loads
/// nor spills much more. The best of many predictions is mostly one of those that err, and what is
/// far from any choice by rule is where they err most.
static bool isPlausible(const Scored &candidate, const Scored &base) {
  struct Limit {
    StringRef feature;
    double more;
  };
  // Logarithms to base 2, and of spills the registers.
  static const Limit limits[] = {
      {"padded_flops", 0.15}, {"vector_loads", 0.3}, {"register_spill", 0.05}};
  static const std::vector<std::string> names = candidateNames();
  return llvm::all_of(limits, [&](const Limit &limit) {
    size_t at = llvm::find(names, limit.feature) - names.begin();
    return candidate.features[at] <= base.features[at] + limit.more;
  });
}

/// The best knobs of a card, from `begin` on; nullopt if none are plausible.
static llvm::Expected<std::optional<Scored>> bestOf(Scorer &scorer, const Choice &begin,
                                                    const Scored &base) {
  const Card &card = *begin.card;
  auto beam = scorer.scored(begin);
  if (!beam)
    return beam.takeError();
  for (size_t i = 0; i < card.knobs.size(); i += 2) {
    auto pair = ArrayRef(card.knobs).slice(i, std::min<size_t>(2, card.knobs.size() - i));
    auto next = scorer.scored(expanded(*beam, pair));
    if (!next)
      return next.takeError();
    llvm::erase_if(*next, [&](const Scored &each) { return !isPlausible(each, base); });
    if (next->empty())
      return std::nullopt;
    llvm::sort(*next, isFaster);
    next->resize(std::min(next->size(), kBeam));
    *beam = std::move(*next);
  }
  return std::optional(beam->front());
}

/// How much longer the choice is predicted to take where single features are as in another one.
static llvm::Error addMoved(Scorer &scorer, const Scored &best, const Scored &base,
                            Decision &decision) {
  std::vector<std::string> names = candidateNames();
  std::vector<Scored> changed;
  std::vector<size_t> which;
  for (size_t i = 0; i < names.size(); ++i) {
    if (best.features[i] == base.features[i])
      continue;
    changed.push_back(best);
    changed.back().features[i] = base.features[i];
    which.push_back(i);
  }
  if (llvm::Error error = scorer.score(changed))
    return error;
  for (auto [i, each] : llvm::zip(which, changed))
    decision.moved.emplace_back(names[i], std::exp(each.logarithm - best.logarithm));
  llvm::sort(decision.moved, [](auto &a, auto &b) {
    return std::pair(-std::abs(std::log(a.second)), a.first) <
           std::pair(-std::abs(std::log(b.second)), b.first);
  });
  decision.moved.resize(std::min(decision.moved.size(), kShown));
  return llvm::Error::success();
}

llvm::Expected<Decision> LearnedChooser::decide(graph::GroupOp group,
                                                ArrayRef<warehouse::Offer> offers,
                                                const program::Machine &machine,
                                                const Choice &base) {
  Decision decision;
  decision.otherwise = base;
  auto keep = [&](const Twine &why) {
    decision.kept = why.str();
    decision.choice = base;
    return decision;
  };
  auto measured = isMeasured(group);
  if (!measured)
    return measured.takeError();
  if (*measured)
    return keep("it was tuned");
  if (!estimate::hasConstantSizes(group) || !base.versions.empty())
    return keep("its sizes are not all constant");
  Scorer scorer(model, group, machine);
  auto known = scorer.scored(base);
  if (!known)
    return known.takeError();
  std::optional<Scored> best;
  for (const warehouse::Offer &offer : offers) {
    const Card &card = *offer.card;
    bool isOwn = &card == base.card;
    if (!offer.isOffered() || card.knobs.empty() ||
        !(isOwn || (card.priority >= 0 && isJudged(card))))
      continue;
    Choice begin{&card, {}};
    for (const warehouse::Knob &knob : card.knobs)
      begin.knobs[knob.name] = knob.initial;
    if (isOwn)
      begin.knobs = base.knobs;
    for (bool isShort : {false, true}) {
      begin.isShort = isShort;
      if (isShort && (!mayRound || !plan::whyNotShort(begin, group, machine).empty()))
        continue;
      auto found = bestOf(scorer, begin, known->front());
      if (!found)
        return found.takeError();
      if (*found && (!best || isFaster(**found, *best)))
        best = std::move(**found);
    }
  }
  if (!best)
    return keep("no card has other knobs for it that a roofline finds as good");
  const Scored &old = known->front();
  decision.speedup = std::exp(old.logarithm - best->logarithm);
  if (old.outside > 0 || best->outside > 0)
    return keep(Twine(static_cast<int64_t>(std::max(old.outside, best->outside))) +
                " of its features are outside of what the model has learned from");
  if (!(decision.speedup >= kPromise))
    return keep("too little is to be gained");
  decision.choice = best->choice;
  if (!base.whyPrecision.empty() || best->choice.isShort)
    decision.choice.whyPrecision = "the cost model says so";
  if (llvm::Error error = addMoved(scorer, *best, old, decision))
    return std::move(error);
  return decision;
}

llvm::Expected<Choice> LearnedChooser::choose(graph::GroupOp group,
                                              ArrayRef<warehouse::Offer> offers,
                                              const program::Machine &machine) {
  auto base = otherwise.choose(group, offers, machine);
  if (!base)
    return base;
  Decision &last = made[group.getName().str()];
  auto decision = decide(group, offers, machine, *base);
  if (decision)
    last = std::move(*decision);
  else // a model that fails takes no part
    last = {"the cost model failed: " + llvm::toString(decision.takeError()), *base, *base, 1, {}};
  return last.choice;
}

} // namespace heddle::learn
