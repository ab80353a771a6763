// Trees: ensembles of decision trees, walked in all trees at once.
//
// A state [n, trees] holds the node where each row stands in each tree. One step gathers that
// node's feature, threshold and children; a leaf is its own child. As many steps as the deepest
// tree is high.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Activations.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
struct Forest {
  Ints features, whenTrue, whenFalse, roots; // children and roots are positions in the lists
  std::vector<float> thresholds, weights;    // weights: [nodes, targets]
  std::vector<float> tracksMissing;
  int64_t height = 0;
  std::string mode = "BRANCH_LEQ"; // of all nodes that are not leaves
};
} // namespace

static constexpr int64_t kHighest = 256;

static int64_t heightFrom(const Forest &forest, int64_t root) {
  std::vector<std::pair<int64_t, int64_t>> open = {{root, 0}};
  int64_t highest = 0;
  while (!open.empty()) {
    auto [place, depth] = open.back();
    open.pop_back();
    highest = std::max(highest, depth);
    if (depth > kHighest)
      refuse("a tree is higher than " + Twine(kHighest) + " nodes, or has a cycle");
    if (forest.whenTrue[place] == place)
      continue;
    open.push_back({forest.whenTrue[place], depth + 1});
    open.push_back({forest.whenFalse[place], depth + 1});
  }
  return highest;
}

static Forest readForest(Node &n, int64_t targets) {
  Forest forest;
  Ints trees = n.getInts("nodes_treeids", {}), ids = n.getInts("nodes_nodeids", {});
  Ints whenTrue = n.getInts("nodes_truenodeids", {}),
       whenFalse = n.getInts("nodes_falsenodeids", {});
  Ints missing = n.getInts("nodes_missing_value_tracks_true", Ints(ids.size(), 0));
  auto modes = n.getTexts("nodes_modes");
  auto values = n.getFloats("nodes_values");
  forest.features = n.getInts("nodes_featureids", {});
  size_t count = ids.size();
  if (count == 0 || trees.size() != count || whenTrue.size() != count ||
      whenFalse.size() != count || modes.size() != count || values.size() != count ||
      forest.features.size() != count || missing.size() != count)
    refuse("the lists 'nodes_...' must have one length, at least 1");
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < count; ++i)
    places[{trees[i], ids[i]}] = i;
  auto placeOf = [&](int64_t tree, int64_t id) {
    auto found = places.find({tree, id});
    if (found == places.end())
      refuse("tree " + Twine(tree) + " has no node " + Twine(id));
    return found->second;
  };
  auto branch = llvm::find_if(modes, [](const std::string &mode) { return mode != "LEAF"; });
  if (branch != modes.end())
    forest.mode = *branch;
  std::vector<bool> isChild(count, false);
  for (size_t i = 0; i < count; ++i) {
    bool isLeaf = modes[i] == "LEAF";
    if (!isLeaf && modes[i] != forest.mode)
      refuse("nodes of modes '" + forest.mode + "' and '" + modes[i] + "' in one ensemble");
    forest.whenTrue.push_back(isLeaf ? i : placeOf(trees[i], whenTrue[i]));
    forest.whenFalse.push_back(isLeaf ? i : placeOf(trees[i], whenFalse[i]));
    if (!isLeaf)
      isChild[forest.whenTrue[i]] = isChild[forest.whenFalse[i]] = true;
    forest.thresholds.push_back(values[i]);
    forest.tracksMissing.push_back(missing[i]);
  }
  for (size_t i = 0; i < count; ++i)
    if (!isChild[i])
      forest.roots.push_back(i);
  for (int64_t root : forest.roots)
    forest.height = std::max(forest.height, heightFrom(forest, root));

  forest.weights.assign(count * targets, 0);
  Ints ofTree = n.getInts("target_treeids", {}), ofNode = n.getInts("target_nodeids", {});
  Ints target = n.getInts("target_ids", {});
  auto weights = n.getFloats("target_weights");
  if (ofNode.size() != ofTree.size() || target.size() != ofTree.size() ||
      weights.size() != ofTree.size())
    refuse("the lists 'target_...' must have one length");
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] < 0 || target[i] >= targets)
      refuse("target " + Twine(target[i]) + " is outside of " + Twine(targets) + " targets");
    forest.weights[placeOf(ofTree[i], ofNode[i]) * targets + target[i]] += weights[i];
  }
  return forest;
}

static Value compareBy(Node &n, StringRef mode, Value x, Value threshold) {
  if (mode == "BRANCH_LEQ")
    return n.compare<LessEqualOp>(x, threshold);
  if (mode == "BRANCH_LT")
    return n.compare<LessOp>(x, threshold);
  if (mode == "BRANCH_GTE")
    return n.compare<GreaterEqualOp>(x, threshold);
  if (mode == "BRANCH_GT")
    return n.compare<GreaterOp>(x, threshold);
  refuse("nodes of mode '" + mode + "' are not supported",
         "supported: BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, LEAF");
}

static Value floats(Node &n, ArrayRef<float> values, ArrayRef<int64_t> shape) {
  ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()),
                       values.size() * sizeof(float));
  return n.constant(constantAttr(RankedTensorType::get(shape, n.f32()), bytes));
}

static void importTreeEnsembleRegressor(Node &n) {
  Value x = n.cast(n.in(0), n.f32());
  int64_t targets = n.getInt("n_targets", 1);
  if (rankOf(x) != 2 || targets < 1)
    refuse("the input must have rank 2 and 'n_targets' be at least 1");
  if (n.getText("aggregate_function", "SUM") != "SUM")
    refuse("'aggregate_function' must be 'SUM'");
  Forest forest = readForest(n, targets);
  int64_t count = forest.features.size();
  Dim columns = dimsOf(x)[1];
  for (int64_t feature : forest.features)
    if (feature < 0 || (columns.constant() && feature >= *columns.constant()))
      refuse("a node asks for feature " + Twine(feature) + " of " + columns.str());
  Value features = n.integers(forest.features), thresholds = floats(n, forest.thresholds, {count});
  Value whenTrue = n.integers(forest.whenTrue), whenFalse = n.integers(forest.whenFalse);
  bool tracks = llvm::any_of(forest.tracksMissing, [](float track) { return track != 0; });
  Value missing = floats(n, forest.tracksMissing, {count});
  Value place =
      n.broadcast(n.integers(forest.roots), {dimsOf(x)[0], Dim((int64_t)forest.roots.size())});
  for (int64_t step = 0; step < forest.height; ++step) {
    Value value =
        n.infer<GatherElementsOp>({x, n.gather(features, place, 0)}, {n.integer("axis", 1)});
    Value holds = compareBy(n, forest.mode, value, n.gather(thresholds, place, 0));
    if (tracks) {
      Value follows = n.cast(n.gather(missing, place, 0), n.i1());
      holds = n.binary<OrOp>(holds, n.binary<AndOp>(n.infer<IsNanOp>(value), follows));
    }
    place = n.select(holds, n.gather(whenTrue, place, 0), n.gather(whenFalse, place, 0));
  }
  Value scores = n.gather(floats(n, forest.weights, {count, targets}), place, 0);
  Value sum = n.reduce<ReduceSumOp>(scores, {1}, false);
  if (auto base = n.getFloats("base_values"); !base.empty()) {
    std::vector<float> values(base.begin(), base.end());
    sum = n.add(sum, floats(n, values, {(int64_t)values.size()}));
  }
  std::string transform = n.getText("post_transform", "NONE");
  if (transform == "LOGISTIC")
    sum = sigmoid(n, sum);
  else if (transform == "SOFTMAX")
    sum = n.softmax(sum, {1});
  else if (transform != "NONE")
    refuse("'post_transform' '" + transform + "' is not supported");
  n.set(sum);
}

OpRows treeRows() {
  static const OpRow rows[] = {
      {"TreeEnsembleRegressor", kMl, 1, 5, importTreeEnsembleRegressor, false,
       "sum of trees whose branches have one mode"},
  };
  return rows;
}

} // namespace heddle::onnx
