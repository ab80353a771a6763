// MemoryPlan: buffers are packed for typical sizes; what is kept is who lies above whom.

#include "compiler/lower/program/MemoryPlan.h"

#include "llvm/ADT/BitVector.h"

#include <numeric>

namespace heddle::lower {

using graph::Dim;

static int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Packings that are tried, and pairs of buffers that are compared for all of them.
static constexpr int64_t kMostPackings = 64, kPackingWork = 100'000'000;

static bool areAliveTogether(const Buffer &a, const Buffer &b) {
  return a.space == b.space && a.first <= b.last && b.first <= a.last;
}

namespace {
struct Packing {
  std::vector<size_t> placed; // all buffers from the lowest offset to the highest
  int64_t bytes = 0;
  size_t highest = 0; // place in the order of the buffer that ends there
};
} // namespace

/// Each at the lowest offset that is free while it lives.
static Packing pack(llvm::ArrayRef<Buffer> buffers, llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<size_t> order) {
  Packing packing;
  std::vector<int64_t> offsets(buffers.size());
  for (auto [place, i] : llvm::enumerate(order)) {
    int64_t &offset = offsets[i];
    for (size_t other : packing.placed) {
      if (!areAliveTogether(buffers[i], buffers[other]))
        continue;
      if (offset + sizes[i] <= offsets[other])
        break;
      offset = std::max(offset, offsets[other] + sizes[other]);
    }
    packing.placed.insert(
        llvm::upper_bound(packing.placed, i,
                          [&](size_t a, size_t b) { return offsets[a] < offsets[b]; }),
        i);
    if (offset + sizes[i] > packing.bytes) {
      packing.bytes = offset + sizes[i];
      packing.highest = place;
    }
  }
  return packing;
}

/// The most that is alive at once, which no packing goes below.
static int64_t mostAlive(llvm::ArrayRef<Buffer> buffers, llvm::ArrayRef<int64_t> sizes) {
  std::map<int64_t, int64_t> changes;
  for (auto [buffer, size] : llvm::zip(buffers, sizes)) {
    changes[buffer.first] += size;
    changes[buffer.last == INT64_MAX ? INT64_MAX : buffer.last + 1] -= size;
  }
  int64_t alive = 0, most = 0;
  for (auto [step, change] : changes)
    most = std::max(most, alive += change);
  return most;
}

/// All buffers from the lowest typical offset to the highest. Where they do not fit into what is
/// alive at once, that which ends last is placed before all others, some times over.
static std::vector<size_t> pack(llvm::ArrayRef<Buffer> buffers,
                                llvm::function_ref<int64_t(const Dim &)> typicalSize) {
  std::vector<int64_t> sizes;
  for (const Buffer &buffer : buffers)
    sizes.push_back(aligned(typicalSize(buffer.bytes)));
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
  });
  int64_t least = mostAlive(buffers, sizes);
  Packing best = pack(buffers, sizes, order), last = best;
  int64_t attempts =
      std::min<int64_t>(kMostPackings, kPackingWork / (order.size() * order.size() + 1));
  for (int64_t i = 0; i < attempts && best.bytes > least && last.highest > 0; ++i) {
    std::rotate(order.begin(), order.begin() + last.highest, order.begin() + last.highest + 1);
    last = pack(buffers, sizes, order);
    if (last.bytes < best.bytes)
      best = last;
  }
  return best.placed;
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
