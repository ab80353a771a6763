// Search: coordinate search. The neighbours of a candidate differ from it in one knob; those whose
// value stands nearest in the knob's domain come first.

#include "compiler/tuner/Search.h"

#include "compiler/records/Records.h"

namespace heddle::tuner {

using plan::Choice;
using warehouse::Card;
using warehouse::Knob;

static constexpr int64_t kRandom = 24;     // draws of a search
static constexpr int64_t kRandomEvery = 4; // turns

Search::Search(llvm::ArrayRef<const Card *> cards, const Choice &base, uint64_t seed)
    : cards(cards.begin(), cards.end()), base(base), best(base), order(seed), draws(seed),
      randomLeft(kRandom) {}

bool Search::isNew(const Choice &choice) const { return !tried.count(records::textOf(choice)); }

void Search::tell(const Choice &choice, double speedup) {
  tried[records::textOf(choice)] = speedup;
  if (speedup > bestSpeedup) {
    bestSpeedup = speedup;
    best = choice;
  }
}

/// Each card once with the values that it is written with.
std::optional<Choice> Search::start() {
  for (const Card *card : cards) {
    Choice choice{card, {}};
    for (const Knob &knob : card->knobs)
      choice.knobs[knob.name] = knob.initial;
    if (card != base.card && isNew(choice))
      return choice;
  }
  return std::nullopt;
}

std::optional<Choice> Search::neighbour() {
  struct Step {
    size_t distance;
    uint64_t order; // among those of one distance
    Choice choice;
  };
  std::vector<Step> steps;
  for (const Knob &knob : best.card ? best.card->knobs : std::vector<Knob>()) {
    size_t here = llvm::find(knob.domain, best.knobs.at(knob.name)) - knob.domain.begin();
    for (size_t i = 0; i < knob.domain.size(); ++i) {
      Choice choice = best;
      choice.knobs[knob.name] = knob.domain[i];
      if (isNew(choice))
        steps.push_back({i > here ? i - here : here - i, order(), std::move(choice)});
    }
  }
  auto nearest = llvm::min_element(steps, [](const Step &a, const Step &b) {
    return std::tie(a.distance, a.order) < std::tie(b.distance, b.order);
  });
  return nearest == steps.end() ? std::nullopt : std::optional(nearest->choice);
}

/// The draws follow from the seed alone, so a search that goes on where another one ended knows
/// which of them are done.
std::optional<Choice> Search::random() {
  for (; !cards.empty() && randomLeft > 0;) {
    --randomLeft;
    const Card *card = cards[draws() % cards.size()];
    Choice choice{card, {}};
    for (const Knob &knob : card->knobs)
      choice.knobs[knob.name] = knob.domain[draws() % knob.domain.size()];
    if (isNew(choice))
      return choice;
  }
  return std::nullopt;
}

std::optional<Choice> Search::next() {
  if (auto choice = start())
    return choice;
  if (++turn % kRandomEvery == 0)
    if (auto choice = random())
      return choice;
  auto choice = neighbour();
  return choice ? choice : random();
}

} // namespace heddle::tuner
