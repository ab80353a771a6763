// ForestScans: trees in order of their leaves. Trees may share nodes, and then have those leaves
// twice.

#include "compiler/lower/program/ForestScans.h"

#include "llvm/ADT/SmallVector.h"

#include <algorithm>

using namespace llvm;

namespace heddle::lower {

namespace {
struct Condition {
  int64_t node;
  size_t begin, middle; // the leaves of a key of at most the limit
};
struct Scan {
  SmallVector<Condition> conditions;
  SmallVector<int32_t> leaves; // their nodes
};
} // namespace

static constexpr size_t kMostLeaves = 64;

/// Appends what lies below a node; false if the tree has too many leaves or steps.
static bool addBelow(ArrayRef<int64_t> nodes, int64_t node, int64_t steps, Scan &scan) {
  int64_t child = nodes[2 * node + 1] >> 32;
  if (child == node && nodes[2 * node] == INT64_MAX) {
    scan.leaves.push_back(static_cast<int32_t>(node));
    return scan.leaves.size() <= kMostLeaves;
  }
  size_t place = scan.conditions.size();
  scan.conditions.push_back({node, scan.leaves.size(), 0});
  if (steps == 0 || place >= kMostLeaves || !addBelow(nodes, child, steps - 1, scan))
    return false;
  scan.conditions[place].middle = scan.leaves.size();
  return addBelow(nodes, child + 1, steps - 1, scan);
}

/// The limit in a word: there are no keys between those of infinity and NaN.
static int32_t limitOf(int64_t limit) {
  if (limit == INT64_MAX)
    return INT32_MAX;
  return static_cast<int32_t>(std::clamp<int64_t>(limit, INT32_MIN, INT32_MAX - 1));
}

std::vector<char> forestScans(ArrayRef<int64_t> nodes, ArrayRef<int64_t> roots) {
  SmallVector<int32_t> words;
  for (size_t tree = 0; tree < roots.size(); tree += 2) {
    Scan scan;
    if (!addBelow(nodes, roots[tree], roots[tree + 1], scan) || scan.conditions.empty()) {
      words.push_back(0);
      continue;
    }
    words.push_back(scan.conditions.size());
    for (const Condition &condition : scan.conditions) {
      uint64_t open = ~uint64_t(0);
      for (size_t leaf = condition.begin; leaf < condition.middle; ++leaf)
        open &= ~(uint64_t(1) << leaf);
      int64_t limit = nodes[2 * condition.node], next = nodes[2 * condition.node + 1];
      words.append({static_cast<int32_t>(next), limitOf(limit), static_cast<int32_t>(open),
                    static_cast<int32_t>(open >> 32)});
    }
    words.append(scan.leaves);
  }
  auto *bytes = reinterpret_cast<const char *>(words.data());
  return std::vector<char>(bytes, bytes + words.size() * sizeof(int32_t));
}

} // namespace heddle::lower
