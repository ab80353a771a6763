// Decision: see Decision.h.

#include "compiler/records/Decision.h"

#include "compiler/graph/edit/CutOut.h"

using namespace mlir;

namespace heddle::records {

using plan::Version;
using warehouse::KnobValues;

static constexpr size_t kMostLeaves = 16; // each may be code of its own

namespace {
using Bounds = std::map<std::string, int64_t>;
using Points = std::vector<const Point *>;

struct Split {
  double impurity;
  size_t symbol;
  int64_t most; // largest size on the left side
};

class Tree {
public:
  Tree(const plan::Choice &base, ArrayRef<std::string> symbols) : base(base), symbols(symbols) {}

  /// Splits the node that gains the most by it, again and again.
  void grow(const Points &points) {
    std::vector<Node> nodes{nodeOf(points, {})}; // from left to right
    while (nodes.size() < kMostLeaves) {
      auto node = llvm::max_element(
          nodes, [](const Node &a, const Node &b) { return a.gain() < b.gain(); });
      if (!node->split)
        break;
      Split split = *node->split;
      auto [left, right] = sides(node->points, split);
      Bounds closer = node->bounds;
      auto [bound, isNew] = closer.try_emplace(symbols[split.symbol], split.most);
      bound->second = std::min(bound->second, split.most);
      Node rest = nodeOf(right, node->bounds);
      *node = nodeOf(left, closer);
      nodes.insert(std::next(node), std::move(rest));
    }
    for (const Node &node : nodes)
      addLeaf(node.points, node.bounds);
  }

  std::vector<Version> leaves; // the last one without bounds, as it is the rightmost

private:
  struct Node {
    Points points;
    Bounds bounds;
    double impurity;
    std::optional<Split> split; // none if all points are alike
    double gain() const { return split ? impurity - split->impurity : -1; }
  };

  Node nodeOf(const Points &points, const Bounds &bounds) const {
    return {points, bounds, impurityOf(points), bestSplit(points)};
  }

  static bool areAlike(const Points &points) {
    return llvm::all_of(points, [&](auto *each) { return each->knobs == points.front()->knobs; });
  }

  static std::pair<Points, Points> sides(const Points &points, const Split &split) {
    Points left, right;
    for (const Point *point : points)
      (point->sizes[split.symbol] <= split.most ? left : right).push_back(point);
    return {left, right};
  }

  /// Gini's, times the number of points.
  static double impurityOf(const Points &points) {
    std::map<std::optional<KnobValues>, double> counts;
    for (const Point *point : points)
      ++counts[point->knobs];
    double squares = 0;
    for (auto &[knobs, count] : counts)
      squares += count * count;
    return static_cast<double>(points.size()) - squares / static_cast<double>(points.size());
  }

  /// A bound between two sizes at which the tiles of the left side are full, if that is possible.
  static int64_t boundOf(int64_t low, int64_t high, const Points &left) {
    if (left.back()->knobs)
      if (auto n = left.back()->knobs->find("n"); n != left.back()->knobs->end())
        if (int64_t full = (high - 1) / n->second * n->second; full >= low)
          return full;
    return low + (high - low) / 2;
  }

  std::optional<Split> bestSplit(const Points &points) const {
    std::optional<Split> best;
    for (size_t symbol = 0; symbol < symbols.size() && !areAlike(points); ++symbol) {
      Points sorted = points;
      llvm::sort(sorted, [&](const Point *a, const Point *b) { // as they are listed, where equal
        return std::pair(a->sizes[symbol], a) < std::pair(b->sizes[symbol], b);
      });
      for (size_t i = 1; i < sorted.size(); ++i) {
        int64_t low = sorted[i - 1]->sizes[symbol], high = sorted[i]->sizes[symbol];
        if (low == high)
          continue;
        Points left(sorted.begin(), sorted.begin() + i), right(sorted.begin() + i, sorted.end());
        double impurity = impurityOf(left) + impurityOf(right);
        if (!best || impurity < best->impurity)
          best = Split{impurity, symbol, boundOf(low, high, left)};
      }
    }
    return best;
  }

  /// The default, by which none loses, serves points that differ but that no split tells apart.
  void addLeaf(const Points &points, const Bounds &bounds) {
    if (areAlike(points) && points.front()->knobs) {
      leaves.push_back({bounds, *points.front()->knobs});
      return;
    }
    for (const Version &version : base.versions) {
      Bounds both = bounds;
      for (auto &[size, most] : version.when) {
        auto [known, isNew] = both.try_emplace(size, most);
        known->second = std::min(known->second, most);
      }
      leaves.push_back({both, version.knobs, version.isShort});
    }
    leaves.push_back({bounds, base.knobs});
  }

  const plan::Choice &base;
  ArrayRef<std::string> symbols;
};
} // namespace

/// Whether what is within the first bounds is within the second, too.
static bool isWithin(const Bounds &inner, const Bounds &outer) {
  return llvm::all_of(outer, [&](auto &bound) {
    auto own = inner.find(bound.first);
    return own != inner.end() && own->second <= bound.second;
  });
}

plan::Choice decide(const plan::Choice &base, ArrayRef<std::string> symbols,
                    ArrayRef<Point> points) {
  Points all;
  for (const Point &point : points)
    all.push_back(&point);
  if (all.empty() || llvm::none_of(points, [](const Point &each) { return each.knobs; }))
    return base;
  Tree tree(base, symbols);
  tree.grow(all);
  plan::Choice choice = base;
  choice.knobs = tree.leaves.back().knobs;
  choice.versions.clear();
  for (Version &leaf : tree.leaves) {
    bool isReached = llvm::none_of(
        choice.versions, [&](const Version &before) { return isWithin(leaf.when, before.when); });
    if (!isReached)
      continue;
    auto &versions = choice.versions;
    while (!versions.empty() && versions.back().knobs == leaf.knobs &&
           isWithin(versions.back().when, leaf.when))
      versions.pop_back();
    versions.push_back(std::move(leaf));
  }
  choice.versions.pop_back(); // the last one is for all sizes
  return choice;
}

bool mayVary(graph::GroupOp group) {
  return llvm::none_of(warehouse::decidingOps(group), [](Operation *op) {
    return llvm::any_of(op->getOperands(), [](Value operand) {
      return static_cast<bool>(graph::ownConstant(operand));
    });
  });
}

} // namespace heddle::records
