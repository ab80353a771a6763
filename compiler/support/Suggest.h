// Suggest: the known word that the user may have meant.
#ifndef HEDDLE_SUPPORT_SUGGEST_H
#define HEDDLE_SUPPORT_SUGGEST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace heddle::support {

/// The nearest of `known` by edit distance (case aside), or "" when none is near.
std::string nearest(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known);

} // namespace heddle::support

#endif // HEDDLE_SUPPORT_SUGGEST_H
