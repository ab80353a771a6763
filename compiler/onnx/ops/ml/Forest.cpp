// Forest: a state [n, trees] holds the node where each row stands in each tree. One step gathers
// that node's feature, threshold and children; a leaf is its own child. As many steps as the
// deepest tree is high.

#include "compiler/onnx/ops/ml/Forest.h"

#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static constexpr int64_t kHighest = 256;

int64_t Forest::addNode(int64_t feature, Branch branch, double threshold, bool tracks) {
  int64_t place = size();
  features.push_back(feature);
  whenTrue.push_back(place);
  whenFalse.push_back(place);
  branches.push_back(branch);
  thresholds.push_back(threshold);
  members.emplace_back();
  tracksMissing.push_back(tracks);
  return place;
}

static constexpr int64_t kMostWeights = int64_t(1) << 28;

void Forest::makeRoom() {
  if (targets > kMostWeights / static_cast<int64_t>(size()))
    refuse(Twine(size()) + " nodes with " + Twine(targets) + " targets each are more than " +
           Twine(kMostWeights) + " weights");
  weights.resize(size() * targets);
  hasWeight.resize(size() * targets);
}

void Forest::addWeight(int64_t node, int64_t target, double weight) {
  if (target < 0 || target >= targets)
    refuse("target " + Twine(target) + " is outside of " + Twine(targets) + " targets");
  makeRoom();
  weights[node * targets + target] += weight;
  hasWeight[node * targets + target] = true;
}

void Forest::setChildren(int64_t place, int64_t ifTrue, int64_t ifFalse) {
  if (ifTrue == place || ifFalse == place)
    refuse("node number " + Twine(place) + " of the lists is its own child");
  whenTrue[place] = ifTrue;
  whenFalse[place] = ifFalse;
}

/// The height of what lies below each node, in `heights`, -1 where nothing is known yet. Nodes may
/// share a child, as the steps of a test for membership do; a way that comes back to a node is
/// refused.
static int64_t heightFrom(const Forest &forest, int64_t root, std::vector<int64_t> &heights) {
  constexpr int64_t kUnknown = -1, kOpen = -2;
  std::vector<int64_t> way = {root};
  while (!way.empty()) {
    int64_t place = way.back(), next = -1;
    if (heights[place] >= 0) {
      way.pop_back();
      continue;
    }
    heights[place] = kOpen;
    int64_t below = -1;
    for (int64_t child : {forest.whenTrue[place], forest.whenFalse[place]}) {
      if (forest.isLeaf(place))
        break;
      if (heights[child] == kOpen)
        refuse("node number " + Twine(child) + " of the lists is reached from itself");
      if (heights[child] == kUnknown)
        next = child;
      below = std::max(below, heights[child]);
    }
    if (next >= 0) {
      way.push_back(next);
      continue;
    }
    heights[place] = below + 1;
    if (heights[place] > kHighest)
      refuse("a tree is higher than " + Twine(kHighest) + " nodes");
    way.pop_back();
  }
  return heights[root];
}

void Forest::finish(int64_t featureCount) {
  makeRoom();
  for (int64_t feature : features)
    if (feature < 0 || (featureCount >= 0 && feature >= featureCount))
      refuse("a node asks for feature " + Twine(feature) + " of " + Twine(featureCount));
  if (roots.empty())
    refuse("there is no tree");
  std::vector<int64_t> heights(size(), -1);
  for (int64_t root : roots)
    height = std::max(height, heightFrom(*this, root, heights));
  for (size_t i = 0; i < size(); ++i)
    if (heights[i] < 0)
      refuse("node number " + Twine(i) + " of the lists is reached from no root");
}

static Value compareBy(Node &n, Branch branch, Value x, Value threshold) {
  switch (branch) {
  case Branch::LessEqual:
    return n.compare<LessEqualOp>(x, threshold);
  case Branch::Less:
    return n.compare<LessOp>(x, threshold);
  case Branch::GreaterEqual:
    return n.compare<GreaterEqualOp>(x, threshold);
  case Branch::Greater:
    return n.compare<GreaterOp>(x, threshold);
  case Branch::NotEqual:
    return n.compare<NotEqualOp>(x, threshold);
  default:
    return n.compare<EqualOp>(x, threshold);
  }
}

namespace {
/// The lists of a forest as constants.
struct Lists {
  Value features, thresholds, whenTrue, whenFalse, branches, tracks, members;
  SmallVector<Branch> used;
};
} // namespace

/// The sets of all nodes as a matrix; a set that is shorter is filled with what equals nothing.
static Value memberTable(Node &n, const Forest &forest, Type element) {
  size_t longest = 1;
  for (const auto &set : forest.members)
    longest = std::max(longest, set.size());
  std::vector<double> table(forest.size() * longest, NAN);
  for (auto [i, set] : llvm::enumerate(forest.members))
    llvm::copy(set, table.begin() + i * longest);
  return numbers(n, table, {(int64_t)forest.size(), (int64_t)longest}, element);
}

static Lists listsOf(Node &n, const Forest &forest, Type element) {
  Lists lists;
  Ints branches, tracks;
  for (size_t i = 0; i < forest.size(); ++i) {
    bool isLeaf = forest.whenTrue[i] == (int64_t)i;
    branches.push_back(static_cast<int64_t>(forest.branches[i]));
    tracks.push_back(forest.tracksMissing[i]);
    if (!isLeaf && !llvm::is_contained(lists.used, forest.branches[i]))
      lists.used.push_back(forest.branches[i]);
  }
  lists.features = n.integers(forest.features);
  lists.thresholds = numbers(n, forest.thresholds, {(int64_t)forest.size()}, element);
  lists.whenTrue = n.integers(forest.whenTrue);
  lists.whenFalse = n.integers(forest.whenFalse);
  lists.branches = n.integers(branches);
  if (llvm::is_contained(tracks, 1))
    lists.tracks = n.cast(n.integers(tracks), n.i1());
  if (llvm::is_contained(lists.used, Branch::Member))
    lists.members = memberTable(n, forest, element);
  return lists;
}

/// Whether each row takes the true way at its node, [n, trees].
static Value takesTrue(Node &n, const Lists &lists, Value value, Value place) {
  Value threshold = n.gather(lists.thresholds, place, 0), holds;
  Value branch = lists.used.size() > 1 ? n.gather(lists.branches, place, 0) : Value();
  for (Branch kind : lists.used) {
    Value now;
    if (kind == Branch::Member) {
      Value sets = n.gather(lists.members, place, 0); // [n, trees, members]
      Value equal = n.compare<EqualOp>(n.unsqueeze(value, {2}), sets);
      Value count = n.reduce<ReduceSumOp>(n.cast(equal, n.i64()), {2}, false);
      now = n.compare<GreaterOp>(count, n.integerScalar(n.i64(), 0));
    } else {
      now = compareBy(n, kind, value, threshold);
    }
    Value number = n.integerScalar(n.i64(), static_cast<int64_t>(kind));
    holds = holds ? n.select(n.compare<EqualOp>(branch, number), now, holds) : now;
  }
  if (lists.tracks) {
    Value follows = n.gather(lists.tracks, place, 0);
    holds = n.binary<OrOp>(holds, n.binary<AndOp>(n.infer<IsNanOp>(value), follows));
  }
  return holds;
}

Value evaluate(Node &n, const Forest &forest, Value x, Aggregate aggregate) {
  Type element = elementOf(x);
  int64_t count = forest.size(), trees = forest.roots.size();
  Lists lists = listsOf(n, forest, element);
  Value place = n.broadcast(n.integers(forest.roots), {dimsOf(x)[0], Dim(trees)});
  for (int64_t step = 0; step < forest.height; ++step) {
    Value value =
        n.infer<GatherElementsOp>({x, n.gather(lists.features, place, 0)}, {n.integer("axis", 1)});
    Value holds = takesTrue(n, lists, value, place);
    place =
        n.select(holds, n.gather(lists.whenTrue, place, 0), n.gather(lists.whenFalse, place, 0));
  }
  auto leaves = [&](ArrayRef<double> table) { // [n, trees, targets]
    return n.gather(numbers(n, table, {count, forest.targets}, element), place, 0);
  };
  if (aggregate == Aggregate::Sum || aggregate == Aggregate::Average) {
    Value sum = n.reduce<ReduceSumOp>(leaves(forest.weights), {1}, false);
    return aggregate == Aggregate::Sum ? sum : n.div(sum, static_cast<double>(trees));
  }
  // Leaves that say nothing of a target do not count; where none does, it is 0.
  bool isMin = aggregate == Aggregate::Min;
  double none = isMin ? INFINITY : -INFINITY;
  std::vector<double> table = forest.weights;
  for (size_t i = 0; i < table.size(); ++i)
    if (!forest.hasWeight[i])
      table[i] = none;
  Value best = isMin ? n.reduce<ReduceMinOp>(leaves(table), {1}, false)
                     : n.reduce<ReduceMaxOp>(leaves(table), {1}, false);
  Value isNone = n.compare<EqualOp>(best, n.scalar(element, none));
  return n.select(isNone, n.scalar(element, 0), best);
}

} // namespace heddle::onnx
