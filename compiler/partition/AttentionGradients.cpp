// AttentionGradients: the ops around scores, which of them are the way back, and copies of what
// these read.

#include "compiler/partition/AttentionGradients.h"

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/mechanism/Shapes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace heddle::partition {

using graph::DimVector;
using Ops = llvm::SetVector<Operation *>;

namespace {
/// Ops that compute row by row from a product's elements, and the products around them.
class Scores {
public:
  Scores(Block &block, graph::ExpOp power) : block(block), full(graph::dimsOf(power.getResult())) {
    addSources(power.getX());
    for (size_t i = 0; i < inside.size() && inside.size() <= kMostOps; ++i)
      follow(inside[i]);
  }

  /// The ops of the way back, and of the way forward those that it reads; none if there is no way
  /// back, or nothing else reads these.
  std::pair<Ops, Ops> split() const;

  Ops inside;   // products that make scores, and what follows from them; transposes before products
  Ops products; // that take what is inside

private:
  bool isRow(Value value) const { return mechanism::isRowShape(graph::dimsOf(value), full, 1); }
  bool isInRows(Operation *op) const {
    if (op->getBlock() != &block || op->getNumResults() != 1)
      return false;
    Value result = op->getResult(0);
    bool keepsPlace = graph::isElementwise(op) || !graph::reducedAxes(op).empty() ||
                      (isa<graph::BroadcastOp>(op) && isRow(op->getOperand(0)));
    return keepsPlace && (graph::dimsOf(result) == full || isRow(result));
  }
  bool makesScores(Value value, SmallVectorImpl<Operation *> &path, int64_t depth) const;
  void addSources(Value value);
  void follow(Operation *op);

  Block &block;
  DimVector full;
};
} // namespace

/// Whether the value comes from a product of the scores' shape, element by element; the ops between
/// and the product.
bool Scores::makesScores(Value value, SmallVectorImpl<Operation *> &path, int64_t depth) const {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || op->getBlock() != &block || graph::dimsOf(value) != full)
    return false;
  bool isSource = isa<graph::MatmulOp>(op);
  if (!isSource && graph::isElementwise(op))
    for (Value operand : op->getOperands())
      isSource |= makesScores(operand, path, depth - 1);
  if (isSource)
    path.push_back(op);
  return isSource;
}

void Scores::addSources(Value value) {
  SmallVector<Operation *> path;
  if (makesScores(value, path, 8))
    inside.insert(path.begin(), path.end());
}

void Scores::follow(Operation *op) {
  for (Operation *user : op->getResult(0).getUsers()) {
    if (isInRows(user)) {
      inside.insert(user);
      for (Value operand : user->getOperands())
        if (!inside.contains(operand.getDefiningOp()))
          addSources(operand);
    } else if (auto product = dyn_cast<graph::MatmulOp>(user)) {
      products.insert(product);
    } else if (auto transpose = dyn_cast<graph::TransposeOp>(user);
               transpose && llvm::all_of(transpose->getUsers(), [](Operation *reader) {
                 return isa<graph::MatmulOp>(reader);
               })) {
      inside.insert(transpose);
    }
  }
}

/// Ops that follow from these in the block, without them.
static llvm::DenseSet<Operation *> followersOf(Block &block, const Ops &ops) {
  llvm::DenseSet<Operation *> found;
  SmallVector<Operation *> open(ops.begin(), ops.end());
  while (!open.empty())
    for (Operation *user : open.pop_back_val()->getUsers())
      if (Operation *here = block.findAncestorOpInBlock(*user); here && found.insert(here).second)
        open.push_back(here);
  return found;
}

std::pair<Ops, Ops> Scores::split() const {
  Ops back, read;
  if (products.size() < 2 || inside.size() > kMostOps)
    return {};
  // Scores of the way back follow from what the way forward gives.
  llvm::DenseSet<Operation *> after = followersOf(block, products);
  for (const Ops &some : {inside, products})
    for (Operation *op : some)
      if (after.contains(op))
        back.insert(op);
  if (back.empty() || llvm::all_of(products, [&](Operation *op) { return back.contains(op); }))
    return {};
  SmallVector<Operation *> open(back.begin(), back.end());
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands())
      if (Operation *source = operand.getDefiningOp();
          inside.contains(source) && !back.contains(source) && read.insert(source))
        open.push_back(source);
  return {back, read};
}

namespace {
/// Copies beside their originals, which can be taken back.
class Copies {
public:
  /// From here on `readers`, and copies, read a copy of the op. Ops are given operands first.
  void add(Operation *op, const Ops &readers) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Operation *copy = builder.clone(*op, map);
    made.insert(copy);
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses()))
      if (readers.contains(use.getOwner()) || made.contains(use.getOwner())) {
        changed.push_back({&use, use.get()});
        use.set(copy->getResult(0));
      }
  }
  void takeBack() {
    for (auto [use, value] : changed)
      use->set(value);
    for (Operation *copy : llvm::reverse(made.getArrayRef()))
      copy->erase();
  }
  /// Erases originals that nobody reads any more.
  static void clean(ArrayRef<Operation *> originals) {
    for (Operation *op : llvm::reverse(originals))
      if (isOpTriviallyDead(op))
        op->erase();
  }
  Ops made;

private:
  IRMapping map;
  SmallVector<std::pair<OpOperand *, Value>> changed;
};
} // namespace

static SmallVector<Operation *> inOrder(const Ops &ops) {
  SmallVector<Operation *> sorted(ops.begin(), ops.end());
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return sorted;
}

/// Transposes, with views between them, that products of these ops read and others too.
static SmallVector<Operation *> sharedMoves(const Ops &ops) {
  Ops moves;
  for (Operation *product : ops)
    if (isa<graph::MatmulOp>(product))
      for (Value operand : product->getOperands()) {
        SmallVector<Operation *> path;
        for (Operation *op = operand.getDefiningOp();
             isa_and_nonnull<graph::TransposeOp, graph::ReshapeOp>(op) && !ops.contains(op);
             op = op->getOperand(0).getDefiningOp())
          path.push_back(op);
        while (!path.empty() && isa<graph::ReshapeOp>(path.back()))
          path.pop_back();
        moves.insert(path.begin(), path.end());
      }
  return inOrder(moves);
}

/// The claim of one attention's gradient; none if no card takes it or it is not wanted.
static std::optional<Claim> begin(Block &block, const Scores &scores,
                                  const warehouse::Warehouse &cards, IsWanted isWanted) {
  auto [back, read] = scores.split();
  if (back.empty() || llvm::any_of(back, [&](Operation *op) {
        return graph::rowsOf(op) != graph::rowsOf(back.front());
      }))
    return std::nullopt;
  Copies copies;
  SmallVector<Operation *> originals = inOrder(read);
  for (Operation *op : originals)
    copies.add(op, back);
  Ops all = back;
  all.insert(copies.made.begin(), copies.made.end());
  SmallVector<Operation *> moves = sharedMoves(all);
  for (Operation *op : moves)
    copies.add(op, all);
  all.insert(copies.made.begin(), copies.made.end());
  Claim claim{inOrder(all), &mechanism::kAttentionGradient};
  if (!cards.takes(claim.ops, *claim.mechanism) || !isWanted(claim)) {
    copies.takeBack();
    return std::nullopt;
  }
  originals.append(moves);
  Copies::clean(inOrder(Ops(originals.begin(), originals.end())));
  return claim;
}

std::vector<Claim> beginAttentionGradients(Block &block, const warehouse::Warehouse &cards,
                                           IsWanted isWanted) {
  std::vector<Claim> claims;
  llvm::DenseSet<Operation *> taken;
  for (auto power : llvm::make_early_inc_range(block.getOps<graph::ExpOp>())) {
    if (taken.contains(power))
      continue;
    if (auto claim = begin(block, Scores(block, power), cards, isWanted)) {
      taken.insert(claim->ops.begin(), claim->ops.end());
      claims.push_back(std::move(*claim));
    }
  }
  return claims;
}

} // namespace heddle::partition
