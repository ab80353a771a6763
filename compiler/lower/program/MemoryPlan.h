// MemoryPlan: which buffers may share memory, decided once at compile time.
#ifndef HEDDLE_LOWER_MEMORYPLAN_H
#define HEDDLE_LOWER_MEMORYPLAN_H

#include "compiler/graph/Graph.h"

namespace heddle::lower {

/// A buffer and the steps of the program, first to last, between which its content matters.
struct Buffer {
  graph::Dim bytes;
  int64_t first, last;
};

/// Where each buffer lies: at `offset` inside of `slot`. Slots follow each other in the arena; the
/// size of a slot is the largest of its `sizes`. Where all sizes are constant there is one slot,
/// packed greedily by size; where some are symbols, buffers that are never alive together share a
/// slot, whatever values the symbols take.
struct MemoryPlan {
  struct Place {
    int64_t slot, offset;
  };
  std::vector<Place> places;
  std::vector<graph::DimVector> slots;
};

constexpr int64_t kAlignment = 64;

MemoryPlan planMemory(llvm::ArrayRef<Buffer> buffers);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_MEMORYPLAN_H
