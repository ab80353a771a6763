// Draft: a first card for a group of a model, to be made better by hand.
#ifndef HEDDLE_CARDS_DRAFT_H
#define HEDDLE_CARDS_DRAFT_H

#include "compiler/pipeline/Pipeline.h"

namespace heddle::cards {

/// The text of a card for the group's nest, or for its card's key where a nest cannot claim it,
/// with the mechanism and the knobs that the group has now and its ops as @example. `group`: a
/// name, or "" for the first group that has a reduction or a window.
llvm::Expected<std::string> draft(llvm::StringRef name, const ModelSource &source,
                                  const CompileOptions &options, llvm::StringRef group);

} // namespace heddle::cards

#endif // HEDDLE_CARDS_DRAFT_H
