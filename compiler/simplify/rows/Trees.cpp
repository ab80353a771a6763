// Trees: what follows from the leaf that a row reaches is a weight of that leaf, and trees whose
// weights are summed are one forest. An isolation forest says of each leaf how deep it is, in some
// sixty ops a tree; scikit-learn's exporter spells them all.
//
// Before   %a = f(forest %x {one tree, weights w}), %b = ..., %y = %a + %b
// After    %y = forest %x {both trees, weights f(w), ...}
// The interpreter computes f of the weights, so nothing is rounded otherwise; trees are summed in
// the order of the sums that were.

#include "compiler/simplify/Chain.h"
#include "compiler/simplify/Passes.h"

#include <set>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_TREESPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

using Ints = SmallVector<int64_t>;

bool hasOneTree(ForestOp forest) { return dimsOf(forest.getRoots())[0].isConstant(1); }

Value integerPairs(OpBuilder &builder, Location location, ArrayRef<int64_t> values) {
  int64_t pairs = values.size() / 2;
  auto type = RankedTensorType::get({pairs, 2}, builder.getI64Type());
  ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()),
                       values.size() * sizeof(int64_t));
  return builder.create<ConstantOp>(location, type, constantAttr(type, bytes));
}

/// The weights [nodes, targets] as bytes.
std::vector<char> weightsOf(ForestOp forest) {
  std::vector<char> storage;
  auto constant = forest.getWeights().getDefiningOp<ConstantOp>();
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  return std::vector<char>(bytes.begin(), bytes.end());
}

/// Makes the forest read x through the gather of its columns: forest(x[:, c]) reads column c[i] of
/// x.
void readThrough(ForestOp forest) {
  constexpr int64_t kMostColumns = 4; // for each of those that are read: a run looks at all
  auto gather = forest.getX().getDefiningOp<GatherOp>();
  auto columns = gather ? constantIntegers(gather.getIndices()) : std::nullopt;
  if (!columns || gather.getAxis() != 1 || rankOf(gather.getX()) != 2 ||
      rankOf(gather.getIndices()) != 1)
    return;
  auto all = dimsOf(gather.getX())[1].constant();
  int64_t read = columns->size();
  if (!all || read == 0 || *all / kMostColumns > read ||
      !llvm::all_of(*columns, [&](int64_t column) { return column >= 0 && column < *all; }))
    return;
  Ints nodes = *constantIntegers(forest.getNodes());
  for (size_t i = 0; i < nodes.size(); i += 2) {
    int64_t child = nodes[i + 1] >> 32, feature = nodes[i + 1] & 0xffffffff;
    bool isMirror = feature >= read;
    nodes[i + 1] = ((*columns)[feature % read] + (isMirror ? *all : 0)) | child << 32;
  }
  OpBuilder builder(forest);
  forest.getXMutable().assign(gather.getX());
  forest.getNodesMutable().assign(integerPairs(builder, forest.getLoc(), nodes));
}

struct IsBefore {
  bool operator()(Operation *a, Operation *b) const { return a != b && a->isBeforeInBlock(b); }
};

/// Values that follow from the leaf that a row reaches in a tree, and from nothing else of the row.
class Followers {
public:
  explicit Followers(ForestOp forest)
      : block(forest->getBlock()), source(forest.getResult()), followers{source} {
    addReaders(source);
    while (!open.empty()) {
      Operation *op = *open.begin();
      open.erase(open.begin());
      if (!isOfElements(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
            return !followers.contains(operand) && !isNumber(operand, 0) && !isTable(op, operand);
          }))
        continue;
      append(op);
      followers.insert(op->getResult(0));
      addReaders(op->getResult(0));
    }
  }

  /// All of it, where others read the last result only, and that is one of weights.
  std::optional<Chain> chain() const {
    if (ops.empty() || elementOf(ops.back()->getResult(0)) != elementOf(source))
      return std::nullopt;
    for (Value value : followers)
      for (Operation *user : value.getUsers())
        if (value != ops.back()->getResult(0) &&
            (user->getNumResults() != 1 || !followers.contains(user->getResult(0))))
          return std::nullopt;
    return Chain{source, ops};
  }

private:
  void addReaders(Value value) {
    for (Operation *op : value.getUsers())
      if (op->getBlock() == block)
        open.insert(op);
  }
  bool isOfElements(Operation *op) const {
    auto gather = dyn_cast_or_null<GatherOp>(op);
    return op && op->getBlock() == block &&
           (isElementwise(op) || isa<ReshapeOp>(op) || (gather && isTable(op, gather.getX())));
  }
  /// Whether a gather picks from the operand, a constant vector.
  static bool isTable(Operation *op, Value operand) {
    return isa<GatherOp>(op) && operand == op->getOperand(0) && rankOf(operand) == 1 &&
           operand.getDefiningOp<ConstantOp>();
  }
  /// Whether this is one number, the same for all rows, whatever it is computed by.
  bool isNumber(Value value, int depth) {
    constexpr int kDeepest = 256;
    if (isUniform(value))
      return true;
    auto [found, isNew] = numbers.try_emplace(value, false);
    Operation *op = value.getDefiningOp();
    if (!isNew || depth == kDeepest || !isOfElements(op))
      return found->second;
    bool result = llvm::all_of(op->getOperands(), [&](Value operand) {
      return isTable(op, operand) || isNumber(operand, depth + 1);
    });
    return numbers[value] = result;
  }
  /// Appends the op, after the ops that make its numbers.
  void append(Operation *op) {
    if (!appended.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      if (!followers.contains(operand) && !isUniform(operand) && !isTable(op, operand))
        append(operand.getDefiningOp());
    ops.push_back(op);
  }

  Block *block;
  Value source;
  std::set<Operation *, IsBefore> open;
  llvm::DenseSet<Value> followers;
  llvm::DenseMap<Value, bool> numbers;
  llvm::DenseSet<Operation *> appended;
  SmallVector<Operation *> ops;
};

void foldIntoWeights(ForestOp forest) {
  if (!hasOneTree(forest) || !dimsOf(forest.getWeights())[1].isConstant(1) ||
      forest.getCombine() != 0 || !forest.getWeights().getDefiningOp<ConstantOp>())
    return;
  auto chain = Followers(forest).chain();
  if (!chain)
    return;
  Ints nodes = *constantIntegers(forest.getNodes());
  auto weightsType = cast<RankedTensorType>(forest.getWeights().getType());
  int64_t count = nodes.size() / 2, size = bytesOf(weightsType.getElementType());
  auto isLeaf = [&](int64_t i) { return nodes[2 * i] == INT64_MAX && nodes[2 * i + 1] >> 32 == i; };
  // No row stays at another node, of whose weight nothing is asked: it takes that of a leaf.
  std::vector<char> weights = weightsOf(forest);
  int64_t leaf = 0;
  while (leaf < count && !isLeaf(leaf))
    ++leaf;
  if (leaf == count)
    return;
  for (int64_t i = 0; i < count; ++i)
    if (!isLeaf(i))
      std::memcpy(&weights[i * size], &weights[leaf * size], size);
  auto results =
      resultsOf(*chain, reference::Tensor::borrow(weightsType.getElementType(), {count}, weights));
  if (!results)
    return;
  OpBuilder builder(forest);
  forest.getWeightsMutable().assign(builder.create<ConstantOp>(
      forest.getLoc(), weightsType, constantAttr(weightsType, results->bytes())));
  builder.setInsertionPointAfter(forest);
  Value result = Build(builder, forest).reshape(forest.getResult(), dimsOf(chain->result()));
  chain->result().replaceAllUsesWith(result);
  for (Operation *op : llvm::reverse(chain->ops))
    if (op->use_empty())
      op->erase();
}

/// Sums of weights that only `forest`'s one reader needs.
bool isTerm(ForestOp forest) {
  return forest && forest->hasOneUse() && forest.getCombine() == 0 &&
         forest.getWeights().getDefiningOp<ConstantOp>();
}

/// The forests of (((a + b) + c) + d), all but `first` of one tree, and its sums in their order.
std::pair<SmallVector<ForestOp>, SmallVector<AddOp>> termsFrom(ForestOp first) {
  SmallVector<ForestOp> forests{first};
  SmallVector<AddOp> sums;
  for (Operation *last = first; last->hasOneUse(); last = sums.back()) {
    auto add = dyn_cast<AddOp>(*last->user_begin());
    if (!add || add->getBlock() != first->getBlock())
      break;
    bool isLeft = add.getX() == last->getResult(0);
    auto other = (isLeft ? add.getY() : add.getX()).getDefiningOp<ForestOp>();
    if (!isTerm(other) || !hasOneTree(other) || first.getX() != other.getX())
      break;
    forests.push_back(other);
    sums.push_back(add);
  }
  return {forests, sums};
}

/// One forest in the place of the last sum; the forests that are gone.
SmallVector<ForestOp> joinSums(ForestOp first) {
  if (!isTerm(first))
    return {};
  auto [forests, sums] = termsFrom(first);
  if (sums.empty())
    return {};
  Ints nodes, roots;
  std::vector<char> weights;
  bool isMirrored = false;
  for (ForestOp forest : forests) {
    int64_t base = nodes.size() / 2;
    for (auto [i, word] : llvm::enumerate(*constantIntegers(forest.getNodes())))
      nodes.push_back(i % 2 ? word + (base << 32) : word);
    for (auto [i, word] : llvm::enumerate(*constantIntegers(forest.getRoots())))
      roots.push_back(i % 2 ? word : word + base);
    llvm::append_range(weights, weightsOf(forest));
    isMirrored |= forest.getMirrored();
  }
  int64_t count = nodes.size() / 2;
  if (count > INT32_MAX)
    return {};
  OpBuilder builder(sums.back());
  Location location = sums.back().getLoc();
  auto was = cast<RankedTensorType>(first.getWeights().getType());
  auto type = RankedTensorType::get({count, was.getShape()[1]}, was.getElementType());
  Value joined = builder.create<ForestOp>(
      location, first.getType(), first.getX(), integerPairs(builder, location, nodes),
      integerPairs(builder, location, roots),
      builder.create<ConstantOp>(location, type, constantAttr(type, weights)), 0, isMirrored);
  sums.back().getResult().replaceAllUsesWith(joined);
  for (AddOp sum : llvm::reverse(sums))
    sum->erase();
  for (ForestOp forest : forests)
    forest->erase();
  return forests;
}

struct TreesPass : impl::TreesPassBase<TreesPass> {
  void runOnOperation() override {
    SmallVector<ForestOp> forests;
    getOperation().walk([&](ForestOp forest) { forests.push_back(forest); });
    for (ForestOp forest : forests) {
      readThrough(forest);
      foldIntoWeights(forest);
    }
    llvm::DenseSet<Operation *> gone;
    for (ForestOp forest : forests)
      if (!gone.contains(forest))
        for (ForestOp joined : joinSums(forest))
          gone.insert(joined);
  }
};

} // namespace

} // namespace heddle::simplify
