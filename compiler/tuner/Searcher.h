// Searcher: the interface of all searches of the tuner.
#ifndef HEDDLE_TUNER_SEARCHER_H
#define HEDDLE_TUNER_SEARCHER_H

#include <optional>

namespace heddle::tuner {

/// Proposes candidates, and learns from their results.
template <typename Candidate> class Searcher {
public:
  virtual ~Searcher() = default;

  /// A candidate that was not tried; nullopt when none is left that is worth a trial.
  virtual std::optional<Candidate> next() = 0;
  /// The result of a trial: a speedup, 0 for one that failed, unless a search says otherwise.
  virtual void tell(const Candidate &candidate, double result) = 0;
};

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_SEARCHER_H
