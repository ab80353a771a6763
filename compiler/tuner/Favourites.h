// Favourites: selects candidates of a group to measure if a cost model has scored them all: those
// that it finds fastest, as far as later measurements bear it out.
//
// The model's scores are the prior mean of a Gaussian process, in which candidates of a card err
// the more alike the fewer steps their knobs are apart, and all that it promises over the default
// choice may be too much or too little by one factor. Next is the candidate with the greatest
// expected improvement over the best so far (expected improvement: Jones, Schonlau and Welch 1998,
// section 4.1), every other time among the best one's neighbours, which the model tells apart
// better than candidates far from any choice by rule.
#ifndef HEDDLE_TUNER_FAVOURITES_H
#define HEDDLE_TUNER_FAVOURITES_H

#include "compiler/plan/Chooser.h"
#include "compiler/tuner/Searcher.h"

namespace heddle::tuner {

class Favourites : public Searcher<plan::Choice> {
public:
  struct Candidate {
    plan::Choice choice;
    double logarithm; // predicted, of its seconds by the default choice's
  };
  struct Limits {
    int64_t count;      // candidates to measure, including those known already
    double improvement; // of the logarithm; candidates that promise less are not measured
  };
  Favourites(llvm::ArrayRef<Candidate> candidates, const plan::Choice &base, const Limits &limits);

  /// nullopt when enough were measured, or when none is expected to be faster to speak of.
  std::optional<plan::Choice> next() override;
  /// Records a candidate's speed-up, 0 for one that failed. The first word on it counts.
  void tell(const plan::Choice &choice, double speedup) override;
  /// Whether the model has scored candidates of this card.
  bool judges(const warehouse::Card &card) const;

private:
  struct Belief {
    plan::Choice choice;
    std::vector<size_t> places; // indices of the knobs' values in their domains; the precision's
    double promise;             // predicted logarithm of its seconds by the default's
    double mean, variance;      // of the same logarithm, given all that is known
    std::vector<double> shares; // a row of the Cholesky factor of all covariances
    bool isKnown = false;
  };
  Belief *find(const plan::Choice &choice);
  double covariance(const Belief &a, const Belief &b) const;
  void learn(Belief &belief, double logarithm);
  const Belief *mostPromising(bool isNear) const;

  plan::Choice base;
  std::vector<Belief> beliefs;
  Limits limits;
  double best = 0;   // logarithm that was measured
  size_t bestAt = 0; // index of the best belief
  int64_t known = 0; // candidates
};

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_FAVOURITES_H
