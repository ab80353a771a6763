// MemoryPlan: greedy by size for constant sizes; linear scan over slots for symbolic ones.

#include "compiler/lower/program/MemoryPlan.h"

#include <numeric>

namespace heddle::lower {

using graph::Dim;

static bool overlap(const Buffer &a, const Buffer &b) {
  return a.first <= b.last && b.first <= a.last;
}

static int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Largest first, each at the lowest offset that is free while it lives (Pisarchyk & Lee 2020,
/// "greedy by size").
static void planConstant(llvm::ArrayRef<Buffer> buffers, llvm::ArrayRef<size_t> members,
                         MemoryPlan &plan) {
  std::vector<size_t> order(members.begin(), members.end());
  auto sizeOf = [&](size_t i) { return aligned(*buffers[i].bytes.constant()); };
  llvm::sort(order, [&](size_t a, size_t b) {
    return sizeOf(a) != sizeOf(b) ? sizeOf(a) > sizeOf(b) : a < b;
  });
  int64_t slot = plan.slots.size(), total = 0;
  std::vector<size_t> placed; // by offset
  for (size_t i : order) {
    int64_t offset = 0;
    for (size_t other : placed) {
      if (!overlap(buffers[i], buffers[other]))
        continue;
      int64_t start = plan.places[other].offset;
      if (offset + sizeOf(i) <= start)
        break;
      offset = std::max(offset, start + sizeOf(other));
    }
    plan.places[i] = {slot, offset};
    total = std::max(total, offset + sizeOf(i));
    auto at = std::find_if(placed.begin(), placed.end(),
                           [&](size_t other) { return plan.places[other].offset > offset; });
    placed.insert(at, i);
  }
  if (total > 0)
    plan.slots.push_back({Dim(total)});
}

/// In the order of their first step, each into the free slot that held the most similar size.
static void planSymbolic(llvm::ArrayRef<Buffer> buffers, llvm::ArrayRef<size_t> members,
                         MemoryPlan &plan) {
  std::vector<size_t> order(members.begin(), members.end());
  llvm::sort(order, [&](size_t a, size_t b) {
    return buffers[a].first != buffers[b].first ? buffers[a].first < buffers[b].first : a < b;
  });
  auto nominal = [](const Dim &dim) {
    return dim.evaluate([](llvm::StringRef) { return std::optional<int64_t>(64); }).value_or(64);
  };
  struct Slot {
    int64_t index, busyUntil, size;
  };
  std::vector<Slot> slots;
  for (size_t i : order) {
    int64_t size = nominal(buffers[i].bytes);
    Slot *best = nullptr;
    auto distance = [&](const Slot &slot) {
      // Growing a slot costs its growth; a slot too large costs nothing now, but little slots
      // first.
      return slot.size >= size ? (slot.size - size) / 4 : size - slot.size;
    };
    for (Slot &slot : slots)
      if (slot.busyUntil < buffers[i].first && (!best || distance(slot) < distance(*best)))
        best = &slot;
    if (!best) {
      slots.push_back({static_cast<int64_t>(plan.slots.size()), -1, 0});
      plan.slots.emplace_back();
      best = &slots.back();
    }
    best->busyUntil = buffers[i].last;
    best->size = std::max(best->size, size);
    graph::DimVector &sizes = plan.slots[best->index];
    if (!llvm::is_contained(sizes, buffers[i].bytes))
      sizes.push_back(buffers[i].bytes);
    plan.places[i] = {best->index, 0};
  }
}

MemoryPlan planMemory(llvm::ArrayRef<Buffer> buffers) {
  MemoryPlan plan;
  plan.places.resize(buffers.size());
  std::vector<size_t> constant, symbolic;
  for (size_t i = 0; i < buffers.size(); ++i)
    (buffers[i].bytes.constant() ? constant : symbolic).push_back(i);
  planConstant(buffers, constant, plan);
  planSymbolic(buffers, symbolic, plan);
  return plan;
}

} // namespace heddle::lower
