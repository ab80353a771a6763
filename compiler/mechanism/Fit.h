// Fit: how a subgraph, as it grows, stands to what a key or a mechanism wants.
#ifndef HEDDLE_MECHANISM_FIT_H
#define HEDDLE_MECHANISM_FIT_H

#include <string>

namespace heddle::mechanism {

/// Nothing, what may still grow into it, or the whole of it.
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
