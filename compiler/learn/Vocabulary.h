// Vocabulary: the words that features count by, in an order that never changes: a cost model has
// learned what number 17 is.
#ifndef HEDDLE_LEARN_VOCABULARY_H
#define HEDDLE_LEARN_VOCABULARY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace heddle::learn {

using Words = llvm::ArrayRef<llvm::StringRef>;

/// Kinds of a group's nodes: "other", "input", then the ops of the graph dialect without its
/// prefix. A new op is added at the end.
Words opNames();
/// The mechanisms, after "other"; a new one is added at the end.
Words mechanismNames();
/// The knobs of the built-in cards.
Words knobNames();

/// The index of a name; 0, which is "other", if it is not listed.
size_t indexOf(Words names, llvm::StringRef name);

} // namespace heddle::learn

#endif // HEDDLE_LEARN_VOCABULARY_H
