// Builtin: the cards of schedules/, as texts in the library, so that it needs no files beside it.
#ifndef HEDDLE_WAREHOUSE_BUILTIN_H
#define HEDDLE_WAREHOUSE_BUILTIN_H

#include "llvm/ADT/ArrayRef.h"

namespace heddle::warehouse {

struct BuiltinCard {
  const char *path; // from the root of the source tree
  const char *text;
};

/// Written by cmake/EmbedCards.cmake.
llvm::ArrayRef<BuiltinCard> builtinCards();

} // namespace heddle::warehouse

#endif // HEDDLE_WAREHOUSE_BUILTIN_H
