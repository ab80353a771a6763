// Scorer: see Scorer.h.

#include "compiler/learn/Scorer.h"

#include <cmath>
#include <random>
#include <set>

using namespace mlir;

namespace heddle::learn {

using plan::Choice;
using warehouse::Card;
using warehouse::Knob;

static constexpr size_t kAtOnce = 256; // candidates that the model sees together

std::vector<double> Scorer::featuresOfChoice(const Choice &choice) {
  Candidate candidate{group.getMechanism().value_or(""), choice.card != nullptr, choice.knobs,
                      choice.isShort};
  if (choice.card)
    candidate.mechanism = choice.card->mechanism->name;
  return featuresOf(group, candidate, machine);
}

llvm::Error Scorer::score(std::vector<Scored> &some) {
  for (size_t begin = 0; begin < some.size(); begin += kAtOnce) {
    auto part = MutableArrayRef(some).drop_front(begin);
    part = part.take_front(std::min(kAtOnce, part.size()));
    std::vector<std::vector<double>> rows;
    for (Scored &each : part)
      rows.push_back(each.features);
    auto scores = model.score(features, rows);
    if (!scores)
      return scores.takeError();
    for (auto [i, each] : llvm::enumerate(part)) {
      double logarithm = scores->logarithms[i];
      each.logarithm = std::isnan(logarithm) ? INFINITY : logarithm;
      each.outside = scores->outside[i];
    }
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<Scored>> Scorer::scored(ArrayRef<Choice> choices) {
  std::vector<Scored> some;
  for (const Choice &choice : choices)
    some.push_back({choice, featuresOfChoice(choice)});
  if (llvm::Error error = score(some))
    return std::move(error);
  return some;
}

bool isJudged(const Card &card) {
  return card.mechanism->type == mechanism::CardType::Schedule && !card.knobs.empty();
}

std::vector<Choice> productOf(const Card &card, int64_t workers, size_t most, uint64_t seed) {
  std::vector<Knob> knobs = card.knobsFor(workers);
  size_t count = 1;
  for (const Knob &knob : knobs)
    count *= knob.domain.size();
  auto choiceOf = [&](size_t number) {
    Choice choice{&card, {}};
    for (const Knob &knob : knobs) {
      choice.knobs[knob.name] = knob.domain[number % knob.domain.size()];
      number /= knob.domain.size();
    }
    return choice;
  };
  std::vector<Choice> choices;
  if (count <= most) {
    for (size_t number = 0; number < count; ++number)
      choices.push_back(choiceOf(number));
    return choices;
  }
  std::mt19937_64 draws(seed);
  std::set<size_t> drawn;
  while (drawn.size() < most)
    drawn.insert(draws() % count);
  for (size_t number : drawn)
    choices.push_back(choiceOf(number));
  return choices;
}

} // namespace heddle::learn
