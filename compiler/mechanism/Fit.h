// Fit: how far a subgraph, as it grows, matches a key or a mechanism.
#ifndef HEDDLE_MECHANISM_FIT_H
#define HEDDLE_MECHANISM_FIT_H

#include <string>

namespace heddle::mechanism {

/// No match, one that may still grow, or a whole one.
enum class Fit { No, Partial, Full };

/// A fit with its reason: `why` says what stands against it where it is No, and may say what is
/// missing where it is Partial.
struct Verdict {
  Fit fit = Fit::No;
  std::string why;
  bool isFull() const { return fit == Fit::Full; }
};

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_FIT_H
