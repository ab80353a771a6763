// Forest: an ensemble as the nodes of graph.forest, which ask one question only: is a number at
// most a limit? All modes are intervals of the numbers' order; a node that parts more than two,
// such as an equality, becomes several.

#include "compiler/onnx/ops/ml/Forest.h"
#include "compiler/onnx/Agreement.h"

#include "compiler/onnx/ops/Numbers.h"

#include "llvm/ADT/bit.h"

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

/// The height of the tree below each node, in `heights`, -1 if not known yet. Nodes may share a
/// child, as the steps of a test for membership do; a way that comes back to a node is refused.
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
}

namespace {
/// The branch that a number takes at a node: those up to limits[0] have ways[0], and so on; those
/// above all limits have the last one.
struct Intervals {
  Ints limits;
  std::vector<bool> ways;
  bool isMirrored = false; // NaN is the smallest number, else the largest
};

/// The nodes of graph.forest, tree by tree.
class Layout {
public:
  Layout(const Forest &forest, int64_t features, bool isDouble)
      : forest(forest), features(features), isDouble(isDouble), spelt(forest.size(), -1) {}

  void add(int64_t root);
  Ints nodes, roots; // pairs
  Ints places;       // for each node, its leaf's place in the forest; any for others
  bool isMirrored = false;

private:
  struct Want {
    int64_t slot, place;
    size_t low, high; // range of the limits of its place
  };
  int64_t keyOf(double value) const;
  Intervals intervalsOf(int64_t place) const;
  const Intervals &knownIntervals(int64_t place);
  int64_t newSlot();
  void spell(const Want &want);
  int64_t heightOf(int64_t root);

  const Forest &forest;
  int64_t features;
  bool isDouble;
  Ints spelt; // for each place, a slot that holds it
  std::map<int64_t, Intervals> known;
  SmallVector<Want> open;
  Ints heights;
};
} // namespace

int64_t Layout::keyOf(double value) const {
  if (value == 0)
    return 0;
  int64_t bits = isDouble ? llvm::bit_cast<int64_t>(value)
                          : llvm::bit_cast<int32_t>(static_cast<float>(value));
  return bits >= 0 ? bits : bits ^ (isDouble ? INT64_MAX : INT32_MAX);
}

Intervals Layout::intervalsOf(int64_t place) const {
  Branch mode = forest.branches[place];
  double threshold = forest.thresholds[place];
  bool isNotEqual = mode == Branch::NotEqual;
  Ints points; // single numbers that go the other way
  Intervals result;
  if (mode == Branch::Member) {
    for (double member : forest.members[place])
      if (member == member)
        points.push_back(keyOf(member));
    llvm::sort(points);
    points.erase(std::unique(points.begin(), points.end()), points.end());
  } else if (threshold != threshold) {
    result.ways = {isNotEqual}; // nothing compares with NaN
  } else if (mode == Branch::Equal || isNotEqual) {
    points.push_back(keyOf(threshold));
  } else {
    bool isBelow = mode == Branch::LessEqual || mode == Branch::Less;
    bool isWith = mode == Branch::LessEqual || mode == Branch::Greater;
    result.limits = {keyOf(threshold) - !isWith};
    result.ways = {isBelow, !isBelow};
  }
  if (result.ways.empty()) {
    for (int64_t point : points) {
      if (result.limits.empty() || result.limits.back() < point - 1) {
        result.limits.push_back(point - 1);
        result.ways.push_back(isNotEqual);
      }
      result.limits.push_back(point);
      result.ways.push_back(!isNotEqual);
    }
    result.ways.push_back(isNotEqual);
  }
  bool ofNan = isNotEqual || forest.tracksMissing[place];
  if (result.ways.back() != ofNan) {
    result.isMirrored = result.ways.front() == ofNan;
    if (!result.isMirrored) { // no number has the key of NaN
      result.limits.push_back(INT64_MAX - 1);
      result.ways.push_back(ofNan);
    }
  }
  return result;
}

const Intervals &Layout::knownIntervals(int64_t place) {
  auto found = known.find(place);
  return found != known.end() ? found->second : known[place] = intervalsOf(place);
}

int64_t Layout::newSlot() {
  int64_t slot = places.size();
  if (slot >= INT32_MAX - 2)
    refuse("the trees have more than " + Twine(INT32_MAX) + " nodes");
  nodes.append({INT64_MAX, slot << 32});
  places.push_back(0);
  return slot;
}

void Layout::spell(const Want &want) {
  int64_t place = want.place;
  places[want.slot] = place;
  if (forest.isLeaf(place))
    return; // a leaf, which the slot is already
  const Intervals &parts = knownIntervals(place);
  if (want.low == want.high) {
    int64_t next = parts.ways[want.low] ? forest.whenTrue[place] : forest.whenFalse[place];
    bool isLeaf = forest.isLeaf(next);
    open.push_back({want.slot, next, 0, isLeaf ? 0 : knownIntervals(next).limits.size()});
    return;
  }
  bool isWhole = want.low == 0 && want.high == parts.limits.size();
  if (isWhole && spelt[place] >= 0) {
    nodes[2 * want.slot] = nodes[2 * spelt[place]];
    nodes[2 * want.slot + 1] = nodes[2 * spelt[place] + 1];
    return;
  }
  size_t middle = (want.low + want.high) / 2;
  int64_t child = newSlot(), feature = forest.features[place];
  newSlot();
  isMirrored |= parts.isMirrored;
  nodes[2 * want.slot] = parts.limits[middle];
  nodes[2 * want.slot + 1] = (feature + (parts.isMirrored ? features : 0)) | child << 32;
  if (isWhole)
    spelt[place] = want.slot;
  open.push_back({child, place, want.low, middle});
  open.push_back({child + 1, place, middle + 1, want.high});
}

int64_t Layout::heightOf(int64_t root) {
  heights.resize(places.size(), -1);
  SmallVector<int64_t> path = {root};
  while (!path.empty()) {
    int64_t at = path.back(), child = nodes[2 * at + 1] >> 32;
    if (child == at)
      heights[at] = 0;
    else if (heights[child] >= 0 && heights[child + 1] >= 0)
      heights[at] = 1 + std::max(heights[child], heights[child + 1]);
    else
      path.append({child, child + 1});
    if (heights[at] >= 0)
      path.pop_back();
  }
  return heights[root];
}

void Layout::add(int64_t root) {
  int64_t slot = newSlot();
  bool isLeaf = forest.isLeaf(root);
  open.push_back({slot, root, 0, isLeaf ? 0 : knownIntervals(root).limits.size()});
  while (!open.empty())
    spell(open.pop_back_val());
  roots.append({slot, heightOf(slot)});
}

static Value pairs(Node &n, ArrayRef<int64_t> values) {
  auto type = n.tensor({Dim(values.size() / 2), Dim(2)}, n.i64());
  return n.constant(constantAttr(
      type, {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(int64_t)}));
}

Value evaluate(Node &n, const Forest &forest, Value x, Aggregate aggregate) {
  Type element = elementOf(x);
  int64_t features = 1 + *llvm::max_element(forest.features);
  Dim width = dimsOf(x)[1];
  if (!width.constant())
    requireAtMost(n, Dim(features), width, "the trees ask for %lld features, but x has %lld");
  Layout layout(forest, width.constant().value_or(features), element.isF64());
  if (!width.constant()) // a second set of features begins where it is known to
    x = n.sliceAlong(x, 1, Dim(0), Dim(features));
  for (int64_t root : forest.roots)
    layout.add(root);
  bool isSum = aggregate == Aggregate::Sum || aggregate == Aggregate::Average;
  // Leaves that say nothing of a target do not count; where none does, it is 0.
  double none = isSum ? 0 : aggregate == Aggregate::Min ? INFINITY : -INFINITY;
  int64_t count = layout.places.size();
  std::vector<double> weights;
  for (int64_t place : layout.places)
    for (int64_t k = place * forest.targets; k < (place + 1) * forest.targets; ++k)
      weights.push_back(forest.hasWeight[k] ? forest.weights[k] : none);
  int64_t combine = isSum ? 0 : aggregate == Aggregate::Min ? 1 : 2;
  Value result =
      n.typed<ForestOp>(n.tensor({dimsOf(x)[0], Dim(forest.targets)}, element),
                        {x, pairs(n, layout.nodes), pairs(n, layout.roots),
                         numbers(n, weights, {count, forest.targets}, element)},
                        {n.integer("combine", combine), n.flag("mirrored", layout.isMirrored)});
  if (aggregate == Aggregate::Sum)
    return result;
  if (isSum)
    return n.div(result, static_cast<double>(forest.roots.size()));
  Value isNone = n.compare<EqualOp>(result, n.scalar(element, none));
  return n.select(isNone, n.scalar(element, 0), result);
}

} // namespace heddle::onnx
