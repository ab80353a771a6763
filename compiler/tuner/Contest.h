// Contest: how fast a program is beside another one that does the same, run by turns, so that a
// machine that slows down slows down both.
#ifndef HEDDLE_TUNER_CONTEST_H
#define HEDDLE_TUNER_CONTEST_H

#include "compiler/cards/Program.h"

namespace heddle::tuner {

struct Timing {
  double seconds = 0;     // of one run, the median of quiet turns
  double baseSeconds = 0; // of the other program
  double speedup = 1;     // the median of those turns' base by own
};

struct Effort {
  double seconds; // that timing may take
  int64_t turns;  // at least; but a program that is hopelessly slow is given up after three
  bool mayGiveUp = true;
};

/// Enough to tell what is worth a closer look, enough for a search to follow, enough to decide.
constexpr Effort kLook = {0.15, 7};
constexpr Effort kCloserLook = {0.5, 15};
constexpr Effort kDecide = {1.5, 25, false};

/// Times the program alone (`base` null), or beside `base`.
llvm::Expected<Timing> contest(cards::Program *base, cards::Program &program,
                               llvm::ArrayRef<reference::Tensor> inputs, int threads,
                               const Effort &effort);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_CONTEST_H
