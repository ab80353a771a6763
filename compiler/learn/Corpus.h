// Corpus: the features of all that a file of records has measured, and the times.
#ifndef HEDDLE_LEARN_CORPUS_H
#define HEDDLE_LEARN_CORPUS_H

#include "compiler/records/Records.h"

namespace heddle::learn {

/// Selects measurements of a file: those of one situation are comparable.
struct Measured {
  std::string target;                      // target::Target::identity
  std::optional<int64_t> threads;          // nullopt: all that there are, which must be one number
  std::optional<program::Machine> machine; // for an older file that lacks it
};

/// The features as JSON (docs/spec/features.md). An error if the file is damaged, has no such
/// measurements, or is of several machines.
llvm::Expected<std::string> featuresJson(llvm::StringRef path, const Measured &measured);

} // namespace heddle::learn

#endif // HEDDLE_LEARN_CORPUS_H
