// MemoryPlan: buffers are packed for typical sizes; what is kept is who lies above whom.

#include "compiler/lower/program/MemoryPlan.h"

#include "llvm/ADT/BitVector.h"

#include <numeric>

namespace heddle::lower {

using graph::Dim;

static int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

static bool areAliveTogether(const Buffer &a, const Buffer &b) {
  return a.first <= b.last && b.first <= a.last;
}

/// All buffers from the lowest typical offset to the highest.
static std::vector<size_t> pack(llvm::ArrayRef<Buffer> buffers,
                                llvm::function_ref<int64_t(const Dim &)> typicalSize) {
  std::vector<int64_t> sizes, offsets(buffers.size());
  for (const Buffer &buffer : buffers)
    sizes.push_back(aligned(typicalSize(buffer.bytes)));
  std::vector<size_t> bySize(buffers.size()), placed;
  std::iota(bySize.begin(), bySize.end(), 0);
  llvm::sort(bySize, [&](size_t a, size_t b) {
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
  });
  for (size_t i : bySize) {
    int64_t &offset = offsets[i];
    for (size_t other : placed) {
      if (!areAliveTogether(buffers[i], buffers[other]))
        continue;
      if (offset + sizes[i] <= offsets[other])
        break;
      offset = std::max(offset, offsets[other] + sizes[other]);
    }
    placed.insert(
        llvm::upper_bound(placed, i, [&](size_t a, size_t b) { return offsets[a] < offsets[b]; }),
        i);
  }
  return placed;
}

MemoryPlan planMemory(llvm::ArrayRef<Buffer> buffers,
                      llvm::function_ref<int64_t(const Dim &)> typicalSize) {
  MemoryPlan plan;
  plan.below.resize(buffers.size());
  plan.order = pack(buffers, typicalSize);
  std::vector<llvm::BitVector> allBelow(buffers.size());
  for (size_t place = 0; place < plan.order.size(); ++place) {
    size_t i = plan.order[place];
    llvm::BitVector &known = allBelow[i];
    known.resize(buffers.size());
    for (size_t below = place; below-- > 0;) {
      size_t j = plan.order[below];
      if (known.test(j) || !areAliveTogether(buffers[i], buffers[j]))
        continue;
      plan.below[i].push_back(j);
      known |= allBelow[j];
      known.set(j);
    }
  }
  return plan;
}

std::vector<int64_t> MemoryPlan::offsets(llvm::ArrayRef<int64_t> bytes) const {
  std::vector<int64_t> offsets(bytes.size());
  for (size_t i : order)
    for (size_t j : below[i])
      offsets[i] = std::max(offsets[i], offsets[j] + aligned(bytes[j]));
  return offsets;
}

} // namespace heddle::lower
