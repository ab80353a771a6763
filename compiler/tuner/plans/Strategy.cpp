// Strategy: see Strategy.h.

#include "compiler/tuner/plans/Strategy.h"

#include <cmath>

namespace heddle::tuner {

static constexpr int kDraws = 64;                          // draws of neighbours, until one is new
static constexpr int kDrawsNear = 16;                      // after which one site more is changed
static constexpr double kClearlySlower = 1.1, kOdds = 0.1; // so changed sites are drawn less
static constexpr double kHot = 0.02;      // slower by so much is accepted once in e times at first
static constexpr size_t kMostFlips = 4;   // sites changed at once
static constexpr size_t kPopulation = 24; // the paper has 100, and a hundred times the evaluations
static constexpr size_t kTournament = 3;

/// Draws a site with the weight of its groups' time, which also is what it can win.
size_t Strategy::draw() {
  auto weight = [&](size_t i) {
    auto known = odds.find(i);
    return sites[i].seconds * (known == odds.end() ? 1 : known->second);
  };
  double whole = 0;
  for (size_t i = 0; i < sites.size(); ++i)
    whole += weight(i);
  double at = uniform() * whole;
  for (size_t i = 0; i < sites.size(); ++i)
    if ((at -= weight(i)) < 0)
      return i;
  return sites.size() - 1;
}

std::optional<Decisions> Strategy::next() {
  if (tried.empty())
    return Decisions();
  for (int i = 0; !sites.empty() && i < kDraws; ++i) {
    Decisions decisions = from();
    changed.clear();
    // Known neighbours make it look farther.
    for (size_t left = flips() + i / kDrawsNear; left > 0; --left) {
      size_t site = draw();
      changed.push_back(site);
      if (!decisions.erase(site))
        decisions.insert(site);
    }
    if (!tried.count(decisions) && !contradicts(sites, decisions))
      return decisions;
  }
  return std::nullopt;
}

void Strategy::tell(const Decisions &decisions, double seconds) {
  tried.insert(decisions);
  if (changed.size() == 1 && seconds > kClearlySlower * lowest)
    odds[changed.front()] = kOdds;
  if (seconds < lowest) {
    lowest = seconds;
    bestDecisions = decisions;
  }
  take(decisions, seconds);
}

size_t Annealing::flips() {
  size_t count = 1;
  while (count < kMostFlips && uniform() < 0.5 * heat)
    ++count;
  return count;
}

void Annealing::take(const Decisions &decisions, double found) {
  heat = std::max(0.0, 1 - progress);
  double slower = seconds > 0 ? found / seconds - 1 : 0;
  if (seconds == 0 || slower <= 0 || uniform() < std::exp(-slower / (kHot * heat + 1e-9))) {
    current = decisions;
    seconds = found;
  }
}

Decisions Evolution::from() {
  const Individual *best = nullptr;
  for (size_t i = 0; i < kTournament && !population.empty(); ++i) {
    const Individual &drawn = population[random() % population.size()];
    if (!best || drawn.seconds < best->seconds)
      best = &drawn;
  }
  return best ? best->decisions : Decisions();
}

size_t Evolution::flips() { return uniform() < 0.75 ? 1 : 2; }

void Evolution::take(const Decisions &decisions, double seconds) {
  if (!std::isfinite(seconds))
    return;
  population.push_back({decisions, seconds});
  if (population.size() > kPopulation)
    population.pop_front();
}

std::unique_ptr<Strategy> strategyOf(llvm::StringRef name, uint64_t seed) {
  if (name == "annealing")
    return std::make_unique<Annealing>(seed);
  if (name == "evolution")
    return std::make_unique<Evolution>(seed);
  return nullptr;
}

} // namespace heddle::tuner
