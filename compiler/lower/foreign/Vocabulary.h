// Vocabulary: what a kernel in C computes with besides its holes: max, min and exp as the graph
// dialect means them, of elements and of vectors; sums, maxima and minima over lanes; the head of a
// vector, with something else after it.
#ifndef HEDDLE_LOWER_FOREIGN_VOCABULARY_H
#define HEDDLE_LOWER_FOREIGN_VOCABULARY_H

#include "compiler/lower/Kernel.h"

namespace heddle::lower {

/// Writes its functions in the kernel's program.
void emitVocabulary(KernelBuilder &kernel, llvm::StringRef prefix, Type element, int64_t lanes);
/// Declarations of its functions in C.
std::string vocabularyHeader(Type element);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_FOREIGN_VOCABULARY_H
