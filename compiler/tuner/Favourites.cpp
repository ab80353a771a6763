// Favourites: each measurement adds a column to the Cholesky factor of the covariances, from which
// the means and variances of all candidates follow (Rasmussen and Williams 2006, algorithm 2.1, one
// row at a time).

#include "compiler/tuner/Favourites.h"

#include <cmath>

namespace heddle::tuner {

using plan::Choice;
using warehouse::Card;

// Errors of logarithms, as the corpus shows (bench/notes/2026-11-25-tuning-with-a-model.md).
static constexpr double kCardError = 0.25; // the model's, of a card beside the default's
static constexpr double kError = 0.14;     // and on a candidate beside others of its card
static constexpr double kTrust = 0.5;      // relative error of a promised gain
static constexpr double kTiming = 0.025;   // error of a measurement
static constexpr double kSteps = 3;        // distance in knobs at which errors hardly correlate
static constexpr double kFailed = 1;       // logarithm that counts for a failed candidate
static constexpr size_t kNear = 3;         // steps

static std::vector<size_t> placesOf(const Choice &choice) {
  std::vector<size_t> places;
  if (choice.card)
    for (const warehouse::Knob &knob : choice.card->knobs) {
      auto value = choice.knobs.find(knob.name);
      places.push_back(
          llvm::find(knob.domain, value == choice.knobs.end() ? knob.initial : value->second) -
          knob.domain.begin());
    }
  places.push_back(choice.isShort);
  return places;
}

Favourites::Favourites(llvm::ArrayRef<Candidate> candidates, const Choice &base,
                       const Limits &limits)
    : base(base), limits(limits) {
  auto add = [&](const Choice &choice, double logarithm) {
    beliefs.push_back({choice, placesOf(choice), logarithm, logarithm, 0, {}});
    beliefs.back().variance = covariance(beliefs.back(), beliefs.back());
  };
  add(base, 0);
  for (const Candidate &candidate : candidates)
    if (candidate.choice.card != base.card || placesOf(candidate.choice) != beliefs[0].places)
      add(candidate.choice, candidate.logarithm);
  learn(beliefs[0], 0);
}

bool Favourites::judges(const Card &card) const {
  return llvm::any_of(llvm::ArrayRef(beliefs).drop_front(),
                      [&](const Belief &each) { return each.choice.card == &card; });
}

Favourites::Belief *Favourites::find(const Choice &choice) {
  std::vector<size_t> places = placesOf(choice);
  auto found = llvm::find_if(beliefs, [&](const Belief &each) {
    return each.choice.card == choice.card && each.places == places;
  });
  return found == beliefs.end() ? nullptr : &*found;
}

static size_t stepsBetween(llvm::ArrayRef<size_t> some, llvm::ArrayRef<size_t> others) {
  size_t steps = 0;
  for (auto [one, other] : llvm::zip(some, others))
    steps += one > other ? one - other : other - one;
  return steps;
}

double Favourites::covariance(const Belief &a, const Belief &b) const {
  double ofModel = kTrust * kTrust * std::min(0.0, a.promise) * std::min(0.0, b.promise);
  if (a.choice.card != b.choice.card)
    return ofModel;
  double ofCard = a.choice.card == base.card ? 0 : kCardError * kCardError;
  double steps = static_cast<double>(stepsBetween(a.places, b.places));
  return ofModel + ofCard + kError * kError * std::exp(-steps / kSteps);
}

void Favourites::learn(Belief &belief, double logarithm) {
  belief.isKnown = true;
  Belief known = belief;
  double deviation = std::sqrt(known.variance + kTiming * kTiming);
  double surprise = (logarithm - known.mean) / deviation;
  for (Belief &each : beliefs) {
    double share = covariance(each, known);
    for (auto [one, other] : llvm::zip(each.shares, known.shares))
      share -= one * other;
    share /= deviation;
    each.shares.push_back(share);
    each.mean += share * surprise;
    each.variance = std::max(0.0, each.variance - share * share);
  }
}

void Favourites::tell(const Choice &choice, double speedup) {
  double logarithm = speedup > 0 ? -std::log(speedup) : kFailed;
  Belief *belief = find(choice);
  if (logarithm < best) {
    best = logarithm;
    bestAt = belief ? belief - beliefs.data() : bestAt;
  }
  if (!belief || belief->isKnown)
    return;
  ++known;
  learn(*belief, logarithm);
}

/// The mean of how much a candidate is below the best so far, where it is.
static double expectedImprovement(double mean, double deviation, double best) {
  if (deviation <= 0)
    return std::max(0.0, best - mean);
  double z = (best - mean) / deviation;
  double density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
  return (best - mean) * std::erfc(-z / M_SQRT2) / 2 + deviation * density;
}

/// Null if none promises enough.
const Favourites::Belief *Favourites::mostPromising(bool isNear) const {
  const Belief *found = nullptr, &center = beliefs[bestAt];
  double most = limits.improvement;
  for (const Belief &each : beliefs) {
    if (each.isKnown || (isNear && (each.choice.card != center.choice.card ||
                                    stepsBetween(each.places, center.places) > kNear)))
      continue;
    double improvement = expectedImprovement(each.mean, std::sqrt(each.variance), best);
    if (improvement > most) {
      found = &each;
      most = improvement;
    }
  }
  return found;
}

std::optional<Choice> Favourites::next() {
  if (known >= limits.count)
    return std::nullopt;
  const Belief *found = known % 2 ? mostPromising(/*isNear=*/true) : nullptr;
  if (!found)
    found = mostPromising(/*isNear=*/false);
  return found ? std::optional(found->choice) : std::nullopt;
}

} // namespace heddle::tuner
