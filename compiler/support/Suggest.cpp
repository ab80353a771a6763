// Suggest: edit distance over a list of words.

#include "compiler/support/Suggest.h"

#include <algorithm>

namespace heddle::support {

std::string nearest(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known) {
  unsigned best = std::max<unsigned>(1, word.size() / 3) + 1;
  llvm::StringRef found;
  for (llvm::StringRef candidate : known) {
    unsigned distance = candidate.lower() == word.lower()
                            ? 0
                            : word.edit_distance(candidate, /*AllowReplacements=*/true, best);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found.str();
}

} // namespace heddle::support
