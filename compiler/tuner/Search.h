// Search: which candidate of a group to try next: a local search around the best so far, with
// random candidates in between; or what a cost model finds fastest.
#ifndef HEDDLE_TUNER_SEARCH_H
#define HEDDLE_TUNER_SEARCH_H

#include "compiler/tuner/Favourites.h"

#include <random>
#include <set>

namespace heddle::tuner {

class Search : public Searcher<plan::Choice> {
public:
  /// `cards` are those that are offered; `base` is the default choice, of speedup 1. With those of
  /// `shortCards`, null being the default form, factors may be rounded to bf16.
  Search(llvm::ArrayRef<const warehouse::Card *> cards, const plan::Choice &base, int64_t workers,
         uint64_t seed, std::set<const warehouse::Card *> shortCards = {});

  /// The default choice of bf16, if that is not the other one with its factors rounded.
  void beginWith(plan::Choice choice) { shortBase = std::move(choice); }
  /// Follows these instead of a local search, after the cards that they do not judge. Earlier
  /// results count.
  void follow(Favourites some);

  /// nullopt when all near the best were tried, and enough of the others.
  std::optional<plan::Choice> next() override;
  /// Any candidate that was not tried, each of a card as likely as another; nullopt when hardly one
  /// is left.
  std::optional<plan::Choice> draw();
  /// Records a candidate's speed-up, measured in this search or an earlier one; 0 for one that
  /// failed.
  void tell(const plan::Choice &choice, double speedup) override;

  double bestSpeedup() const { return highest; }
  int64_t triedCount() const { return tried.size(); }

private:
  bool isNew(const plan::Choice &choice) const;
  std::optional<plan::Choice> start();
  std::optional<plan::Choice> neighbour();
  std::optional<plan::Choice> random();
  std::optional<plan::Choice> drawn();

  std::vector<const warehouse::Card *> cards;
  std::set<const warehouse::Card *> shortCards;
  std::map<const warehouse::Card *, std::vector<warehouse::Knob>> knobs;
  plan::Choice base, shortBase, best;
  double highest = 1;
  std::map<std::string, double> tried;               // speedups by the candidates' texts
  std::vector<std::pair<plan::Choice, double>> told; // tried choices in their order
  std::optional<Favourites> favourites;
  std::mt19937_64 order, draws;
  int64_t randomLeft, turn = 0;
};

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_SEARCH_H
