// ForestScans: small decision trees as lists of their conditions, which many rows scan together
// (QuickScorer: Lucchese et al., SIGIR 2015).
#ifndef HEDDLE_LOWER_FORESTSCANS_H
#define HEDDLE_LOWER_FORESTSCANS_H

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace heddle::lower {

/// Words, all i32, that the runtime's routine reads beside graph.forest's nodes and roots. Of
/// each tree: how many conditions it has, 0 if rows walk down it; then each condition: feature,
/// limit, and two words with a bit for each leaf that can still be reached where the feature's key
/// is above the limit; then the node of each leaf, one more than conditions. The first leaf that
/// all conditions leave open is the one that a walk ends at. Keys are those of f32, NaN's the
/// largest or the smallest i32; at most 64 leaves a tree.
std::vector<char> forestScans(llvm::ArrayRef<int64_t> nodes, llvm::ArrayRef<int64_t> roots);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_FORESTSCANS_H
