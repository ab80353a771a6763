// Trees: the ops whose attributes describe ensembles of decision trees.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/ml/Forest.h"
#include "compiler/onnx/ops/ml/Scores.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static Branch branchOf(StringRef mode) {
  auto found = llvm::StringSwitch<std::optional<Branch>>(mode)
                   .Case("BRANCH_LEQ", Branch::LessEqual)
                   .Case("BRANCH_LT", Branch::Less)
                   .Case("BRANCH_GTE", Branch::GreaterEqual)
                   .Case("BRANCH_GT", Branch::Greater)
                   .Case("BRANCH_EQ", Branch::Equal)
                   .Case("BRANCH_NEQ", Branch::NotEqual)
                   .Default(std::nullopt);
  if (!found)
    refuse("nodes of mode '" + mode + "' are not known",
           "known: BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ, LEAF");
  return *found;
}

/// Index of node `id` of tree `tree` in the lists.
using Places = std::map<std::pair<int64_t, int64_t>, int64_t>;

static int64_t placeOf(const Places &places, int64_t tree, int64_t id) {
  auto found = places.find({tree, id});
  if (found == places.end())
    refuse("tree " + Twine(tree) + " has no node " + Twine(id));
  return found->second;
}

/// The lists 'nodes_...' of the ops before TreeEnsemble.
static Places readNodes(Node &n, Forest &forest) {
  Ints trees = n.getInts("nodes_treeids", {}), ids = n.getInts("nodes_nodeids", {});
  Ints whenTrue = n.getInts("nodes_truenodeids", {}),
       whenFalse = n.getInts("nodes_falsenodeids", {}),
       features = n.getInts("nodes_featureids", {});
  size_t count = ids.size();
  Ints missing = n.getInts("nodes_missing_value_tracks_true", Ints(count, 0));
  auto modes = n.getTexts("nodes_modes");
  auto values = floatsOrTensor(n, "nodes_values");
  if (count == 0 || trees.size() != count || whenTrue.size() != count ||
      whenFalse.size() != count || modes.size() != count || values.size() != count ||
      features.size() != count || missing.size() != count)
    refuse("the lists 'nodes_...' must have one length, at least 1");
  Places places;
  for (size_t i = 0; i < count; ++i) {
    if (!places.try_emplace({trees[i], ids[i]}, i).second)
      refuse("tree " + Twine(trees[i]) + " has two nodes " + Twine(ids[i]));
    bool isLeaf = modes[i] == "LEAF";
    forest.addNode(isLeaf ? 0 : features[i], isLeaf ? Branch::LessEqual : branchOf(modes[i]),
                   values[i], missing[i]);
  }
  std::vector<bool> isChild(count, false);
  for (size_t i = 0; i < count; ++i) {
    if (modes[i] == "LEAF")
      continue;
    forest.setChildren(i, placeOf(places, trees[i], whenTrue[i]),
                       placeOf(places, trees[i], whenFalse[i]));
    isChild[forest.whenTrue[i]] = isChild[forest.whenFalse[i]] = true;
  }
  std::map<int64_t, int64_t> rootOf;
  for (size_t i = 0; i < count; ++i) {
    if (isChild[i])
      continue;
    auto [known, isNew] = rootOf.try_emplace(trees[i], ids[i]);
    if (!isNew)
      refuse("no node of tree " + Twine(trees[i]) + " has the child " + Twine(known->second) +
                 ", and none the child " + Twine(ids[i]),
             "a tree has one root");
    forest.roots.push_back(i);
  }
  return places;
}

/// The lists 'target_...' or 'class_...'; the weights, in their order.
static std::vector<double> readWeights(Node &n, Forest &forest, const Places &places,
                                       const std::string &stem) {
  Ints trees = n.getInts(stem + "_treeids", {}), nodes = n.getInts(stem + "_nodeids", {}),
       targets = n.getInts(stem + "_ids", {});
  auto weights = floatsOrTensor(n, stem + "_weights");
  if (nodes.size() != trees.size() || targets.size() != trees.size() ||
      weights.size() != trees.size())
    refuse("the lists '" + stem + "_...' must have one length");
  for (size_t i = 0; i < trees.size(); ++i)
    forest.addWeight(placeOf(places, trees[i], nodes[i]), targets[i], weights[i]);
  return weights;
}

static Value plusBase(Node &n, Value scores) {
  auto base = floatsOrTensor(n, "base_values");
  if (base.empty())
    return scores;
  return n.add(scores, numbers(n, base, {(int64_t)base.size()}, elementOf(scores)));
}

static int64_t featureCount(Value x) { return dimsOf(x)[1].constant().value_or(-1); }

static void importTreeEnsembleRegressor(Node &n) {
  Value x = featuresOf(n);
  Forest forest;
  forest.targets = n.getInt("n_targets", 1);
  if (forest.targets < 1)
    refuse("'n_targets' must be at least 1");
  Places places = readNodes(n, forest);
  readWeights(n, forest, places, "target");
  forest.finish(featureCount(x));
  std::string name = n.getText("aggregate_function", "SUM");
  auto aggregate = llvm::StringSwitch<std::optional<Aggregate>>(name)
                       .Case("AVERAGE", Aggregate::Average)
                       .Case("SUM", Aggregate::Sum)
                       .Case("MIN", Aggregate::Min)
                       .Case("MAX", Aggregate::Max)
                       .Default(std::nullopt);
  if (!aggregate)
    refuse("'aggregate_function' is '" + name + "', but must be 'AVERAGE', 'SUM', 'MIN' or 'MAX'");
  Value scores = plusBase(n, evaluate(n, forest, x, *aggregate));
  n.set(n.cast(postTransform(n, scores, n.getText("post_transform", "NONE")), n.f32()));
}

/// Two classes whose leaves weigh only class `id`: its score s tells them apart. The scores of
/// class 0 stand for both, as 1 - s or -s and s; those of class 1 are beside 0.
static void setBinary(Node &n, Value scores, int64_t id, bool isChance) {
  Type element = elementOf(scores);
  std::string transform = n.getText("post_transform", "NONE");
  if (id == 1)
    scores = plusBase(n, scores);
  Value score = n.sliceAlong(scores, 1, Dim(id), Dim(1));
  if (auto base = floatsOrTensor(n, "base_values"); id == 0 && !base.empty())
    score = n.add(score, base.back());
  Value limit = n.scalar(element, isChance ? 0.5 : 0);
  setLabels(n, n.cast(n.compare<GreaterOp>(n.squeeze(score, {1}), limit), n.i64()),
            "classlabels_int64s");
  if (!n.wants(1))
    return;
  Value other = isChance ? n.sub(n.scalar(element, 1), score) : n.unary<NegOp>(score);
  Value both = id == 1 ? scores : n.concat({other, score}, 1);
  if (id == 0 && (isChance || transform != "LOGISTIC") && transform != "PROBIT")
    transform = "NONE"; // as ONNX Runtime has it
  n.set(1, n.cast(postTransform(n, both, transform), n.f32()));
}

static void importTreeEnsembleClassifier(Node &n) {
  Value x = featuresOf(n);
  Forest forest;
  forest.targets = labelCount(n, "classlabels_int64s");
  if (forest.targets < 1)
    refuse("there are no class labels");
  Places places = readNodes(n, forest);
  auto weights = readWeights(n, forest, places, "class");
  forest.finish(featureCount(x));
  Value scores = evaluate(n, forest, x, Aggregate::Sum);
  Ints ids = n.getInts("class_ids", {});
  bool isOne = !ids.empty() && llvm::all_equal(ids);
  if (forest.targets == 2 && isOne)
    return setBinary(n, scores, ids[0], llvm::all_of(weights, [](double w) { return w >= 0; }));
  scores = plusBase(n, scores);
  Value best = n.infer<ArgMaxOp>(
      scores, {n.integer("axis", 1), n.flag("keep_dims", false), n.flag("last", false)});
  setLabels(n, best, "classlabels_int64s");
  if (n.wants(1))
    n.set(1, n.cast(postTransform(n, scores, n.getText("post_transform", "NONE")), n.f32()));
}

/// Sets of the nodes that ask for membership, one after the other, with NaN between them.
static void readMembers(Node &n, Forest &forest, size_t count) {
  std::vector<double> all = tensorList(n, "membership_values").reals;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (forest.branches[i] != Branch::Member)
      continue;
    for (; next < all.size() && !std::isnan(all[next]); ++next)
      forest.members[i].push_back(all[next]);
    ++next;
  }
}

static Forest readEnsemble(Node &n) {
  Forest forest;
  forest.targets = n.getInt("n_targets", 1);
  Ints features = n.getInts("nodes_featureids", {}), whenTrue = n.getInts("nodes_truenodeids", {}),
       whenFalse = n.getInts("nodes_falsenodeids", {}), trueLeaf = n.getInts("nodes_trueleafs", {}),
       falseLeaf = n.getInts("nodes_falseleafs", {}), targets = n.getInts("leaf_targetids", {});
  size_t count = features.size();
  Ints modes = tensorList(n, "nodes_modes").integers,
       missing = n.getInts("nodes_missing_value_tracks_true", Ints(count, 0));
  auto splits = tensorList(n, "nodes_splits").reals, weights = tensorList(n, "leaf_weights").reals;
  if (count == 0 || whenTrue.size() != count || whenFalse.size() != count ||
      trueLeaf.size() != count || falseLeaf.size() != count || modes.size() != count ||
      splits.size() != count || missing.size() != count || weights.size() != targets.size())
    refuse("the lists 'nodes_...' must have one length, and so must 'leaf_...'");
  for (size_t i = 0; i < count; ++i) {
    if (modes[i] < 0 || modes[i] > static_cast<int64_t>(Branch::Member))
      refuse("node " + Twine(i) + " has the mode " + Twine(modes[i]) + ", but known are 0 to 6");
    forest.addNode(features[i], static_cast<Branch>(modes[i]), splits[i], missing[i]);
  }
  for (size_t i = 0; i < targets.size(); ++i)
    forest.addNode(0, Branch::LessEqual, 0, false);
  for (size_t i = 0; i < targets.size(); ++i)
    forest.addWeight(count + i, targets[i], weights[i]);
  auto child = [&](int64_t place, bool isLeaf) -> int64_t {
    if (place < 0 || place >= (int64_t)(isLeaf ? targets.size() : count))
      refuse("a node has the " + Twine(isLeaf ? "leaf " : "child ") + Twine(place) +
             ", which does not exist");
    return isLeaf ? place + (int64_t)count : place;
  };
  for (size_t i = 0; i < count; ++i) {
    forest.setChildren(i, child(whenTrue[i], trueLeaf[i]), child(whenFalse[i], falseLeaf[i]));
  }
  for (int64_t root : n.getInts("tree_roots", {}))
    forest.roots.push_back(child(root, false));
  readMembers(n, forest, count);
  return forest;
}

static void importTreeEnsemble(Node &n) {
  Type element = elementOf(n.in(0));
  Value x = featuresOf(n);
  Forest forest = readEnsemble(n);
  forest.finish(featureCount(x));
  int64_t aggregate = n.getInt("aggregate_function", 1), transform = n.getInt("post_transform", 0);
  static const char *const kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                            "PROBIT"};
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    refuse("'aggregate_function' is " + Twine(aggregate) + " of 0 to 3, 'post_transform' " +
           Twine(transform) + " of 0 to 4");
  Value scores = evaluate(n, forest, x, static_cast<Aggregate>(aggregate));
  n.set(n.cast(postTransform(n, scores, kTransforms[transform]), element));
}

OpRows treeRows() {
  static const OpRow rows[] = {
      {"TreeEnsemble", kMl, 5, 5, importTreeEnsemble},
      {"TreeEnsembleRegressor", kMl, 1, 5, importTreeEnsembleRegressor},
      {"TreeEnsembleClassifier", kMl, 1, 5, importTreeEnsembleClassifier},
  };
  return rows;
}

} // namespace heddle::onnx
