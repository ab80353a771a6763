// Search: the neighbours of a candidate differ from it in one knob, its precision being one,
// or in two, since rows and columns of a tile share the registers. Those in one come first, then
// those whose values stand nearest in the knobs' domains.

#include "compiler/tuner/Search.h"

#include "compiler/records/Records.h"

namespace heddle::tuner {

using plan::Choice;
using warehouse::Card;
using warehouse::Knob;

static constexpr int64_t kRandom = 24;     // draws of a search
static constexpr int64_t kRandomEvery = 4; // turns
static constexpr int64_t kDraws = 1000;    // after which a card has nothing left
static constexpr size_t kFarthest = 4;     // steps of two knobs together

Search::Search(llvm::ArrayRef<const Card *> cards, const Choice &base, int64_t workers,
               uint64_t seed, std::set<const Card *> shortCards)
    : cards(cards.begin(), cards.end()), shortCards(std::move(shortCards)), base(base),
      shortBase(records::shortened(base)), best(base), order(seed), draws(seed),
      randomLeft(kRandom) {
  for (const Card *card : cards)
    knobs[card] = card->knobsFor(workers);
}

bool Search::isNew(const Choice &choice) const { return !tried.count(records::textOf(choice)); }

void Search::tell(const Choice &choice, double speedup) {
  tried[records::textOf(choice)] = speedup;
  told.emplace_back(choice, speedup);
  if (favourites)
    favourites->tell(choice, speedup);
  if (speedup > highest) {
    highest = speedup;
    best = choice;
  }
}

void Search::follow(Favourites some) {
  favourites = std::move(some);
  for (auto &[choice, speedup] : told)
    favourites->tell(choice, speedup);
}

/// The default choice in bf16, and each card once with the values that it is written with, in each
/// precision.
std::optional<Choice> Search::start() {
  if (shortCards.count(shortBase.card) && isNew(shortBase))
    return shortBase;
  for (const Card *card : cards) {
    if (favourites && favourites->judges(*card))
      continue;
    Choice choice{card, {}};
    for (const Knob &knob : knobs.at(card))
      choice.knobs[knob.name] = knob.initial;
    if (card != base.card && isNew(choice))
      return choice;
    choice.isShort = shortCards.count(card);
    if (card != base.card && isNew(choice))
      return choice;
  }
  return std::nullopt;
}

namespace {
struct Step {
  size_t knobs, distance;
  uint64_t order; // among those of one distance
  Choice choice;
  bool operator<(const Step &other) const {
    return std::tie(knobs, distance, order) < std::tie(other.knobs, other.distance, other.order);
  }
};
} // namespace

/// The steps that change this knob too.
static std::vector<Step> stepsAlong(const Knob &knob, const Step &from) {
  std::vector<Step> steps;
  int64_t value = from.choice.knobs.at(knob.name);
  size_t here = llvm::find(knob.domain, value) - knob.domain.begin();
  for (size_t i = 0; i < knob.domain.size(); ++i) {
    if (i == here)
      continue;
    Step step = from;
    step.choice.knobs[knob.name] = knob.domain[i];
    step.distance += i > here ? i - here : here - i;
    ++step.knobs;
    steps.push_back(std::move(step));
  }
  return steps;
}

std::optional<Choice> Search::neighbour() {
  if (!best.card)
    return std::nullopt;
  std::optional<Step> nearest;
  auto consider = [&](Step step) {
    if (nearest &&
        std::pair(nearest->knobs, nearest->distance) < std::pair(step.knobs, step.distance))
      return;
    step.order = order();
    if (isNew(step.choice) && (!nearest || step < *nearest))
      nearest = std::move(step);
  };
  if (shortCards.count(best.card)) {
    Step other{1, 1, 0, best};
    other.choice.isShort = !best.isShort;
    consider(std::move(other));
  }
  const std::vector<Knob> &some = knobs.at(best.card);
  for (size_t i = 0; i < some.size(); ++i)
    for (Step &one : stepsAlong(some[i], {0, 0, 0, best})) {
      consider(one);
      for (size_t j = i + 1; j < some.size(); ++j)
        for (Step &two : stepsAlong(some[j], one))
          if (two.distance <= kFarthest)
            consider(two);
    }
  return nearest ? std::optional(nearest->choice) : std::nullopt;
}

/// One draw, unless it was tried. Draws follow from the seed alone, so a search that goes on where
/// another one ended knows which of them are done.
std::optional<Choice> Search::drawn() {
  const Card *card = cards[draws() % cards.size()];
  Choice choice{card, {}};
  for (const Knob &knob : knobs.at(card))
    choice.knobs[knob.name] = knob.domain[draws() % knob.domain.size()];
  choice.isShort = shortCards.count(card) && draws() % 2;
  return isNew(choice) ? std::optional(choice) : std::nullopt;
}

std::optional<Choice> Search::random() {
  for (; !cards.empty() && randomLeft > 0;) {
    --randomLeft;
    if (auto choice = drawn())
      return choice;
  }
  return std::nullopt;
}

std::optional<Choice> Search::draw() {
  for (int64_t i = 0; !cards.empty() && i < kDraws; ++i)
    if (auto choice = drawn())
      return choice;
  return std::nullopt;
}

std::optional<Choice> Search::next() {
  if (auto choice = start())
    return choice;
  if (favourites)
    return favourites->next();
  if (++turn % kRandomEvery == 0)
    if (auto choice = random())
      return choice;
  auto choice = neighbour();
  return choice ? choice : random();
}

} // namespace heddle::tuner
