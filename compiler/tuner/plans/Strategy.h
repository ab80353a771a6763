// Strategy: which decisions of a plan to try next (Phothilimthana et al., PACT 2021, section 4).
#ifndef HEDDLE_TUNER_PLANS_STRATEGY_H
#define HEDDLE_TUNER_PLANS_STRATEGY_H

#include "compiler/tuner/Searcher.h"
#include "compiler/tuner/plans/Sites.h"

#include <deque>
#include <memory>
#include <random>

namespace heddle::tuner {

class Strategy : public Searcher<Decisions> {
public:
  explicit Strategy(uint64_t seed) : random(seed) {}

  /// Sets what can be decided, which may have become more, and how far the whole search is, 0 to 1.
  void setScene(llvm::ArrayRef<Site> all, double done) {
    sites = all;
    progress = done;
  }
  /// Decisions that were not tried; nullopt when hardly any are left near those that are good.
  std::optional<Decisions> next() override;
  /// Takes the seconds of a run with these decisions; infinity if they cannot be carried out.
  void tell(const Decisions &decisions, double seconds) override;

  const Decisions &best() const { return bestDecisions; }
  double bestSeconds() const { return lowest; }
  size_t triedCount() const { return tried.size(); }

protected:
  virtual Decisions from() = 0;
  virtual size_t flips() = 0;
  virtual void take(const Decisions &decisions, double seconds) = 0;
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random); }

  std::mt19937_64 random;
  double progress = 0;

private:
  size_t draw();

  llvm::ArrayRef<Site> sites;
  std::set<Decisions> tried;
  std::vector<size_t> changed;   // sites, by the last call of `next`
  std::map<size_t, double> odds; // weights of sites whose change alone was clearly slower
  Decisions bestDecisions;
  double lowest = std::numeric_limits<double>::infinity();
};

/// Simulated annealing: the hotter, the more sites are changed at once, and the more is accepted
/// that is slower.
class Annealing : public Strategy {
public:
  using Strategy::Strategy;

private:
  Decisions from() override { return current; }
  size_t flips() override;
  void take(const Decisions &decisions, double seconds) override;

  Decisions current;
  double seconds = 0, heat = 1;
};

/// Regularised evolution (Real et al., AAAI 2019): the better of a few drawn ones has a child, and
/// the oldest dies.
class Evolution : public Strategy {
public:
  using Strategy::Strategy;

private:
  Decisions from() override;
  size_t flips() override;
  void take(const Decisions &decisions, double seconds) override;

  struct Individual {
    Decisions decisions;
    double seconds;
  };
  std::deque<Individual> population;
};

/// "annealing" or "evolution"; null for any other name.
std::unique_ptr<Strategy> strategyOf(llvm::StringRef name, uint64_t seed);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_PLANS_STRATEGY_H
