// MemoryPlan: which buffers may share memory, decided once at compile time.
#ifndef HEDDLE_LOWER_MEMORYPLAN_H
#define HEDDLE_LOWER_MEMORYPLAN_H

#include "compiler/graph/Graph.h"

namespace heddle::lower {

/// A buffer and the steps of the program, first to last, between which its content matters. Its
/// space is numbered as Kernel::space; each has an arena.
struct Buffer {
  graph::Dim bytes;
  int64_t first, last;
  int64_t space = 0;
};

/// Buffers of an arena by which lies above which. A buffer begins where the highest of those below
/// it ends, or at 0. Of two of a space that are alive together one is above the other, directly or
/// through others, so they never overlap, whatever values the symbols in their sizes take.
struct MemoryPlan {
  std::vector<llvm::SmallVector<size_t, 4>> below; // of each buffer, but for what lies below these
  std::vector<size_t> order;                       // all buffers, each after those below it

  /// Offsets of the buffers, in bytes, if they are of these sizes.
  std::vector<int64_t> offsets(llvm::ArrayRef<int64_t> bytes) const;
};

constexpr int64_t kAlignment = 64;

/// Packs the buffers as they are with their typical sizes: largest first, each at the lowest offset
/// that is free while it lives (Pisarchyk & Lee 2020, "greedy by size"), and in other orders where
/// that leaves gaps.
MemoryPlan planMemory(llvm::ArrayRef<Buffer> buffers,
                      llvm::function_ref<int64_t(const graph::Dim &)> typicalSize);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_MEMORYPLAN_H
