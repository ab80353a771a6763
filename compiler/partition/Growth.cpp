// Growth: prologues and epilogues around a skeleton op, with the archive of the latest match.

#include "compiler/partition/Growth.h"

#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::partition {

using warehouse::Fit;

namespace {
class Grower {
public:
  Grower(Block &block, const warehouse::Warehouse &cards, StringRef target,
         llvm::function_ref<bool(Operation *)> isHost)
      : block(block), cards(cards), target(target), isHost(isHost) {
    int64_t number = 0;
    for (Operation &op : block)
      places[&op] = number++;
  }

  std::vector<Claim> run() {
    std::vector<Claim> claims;
    for (Operation &op : llvm::reverse(block)) {
      if (!isOpen(&op) || !warehouse::decides(&op))
        continue;
      Claim claim = growFrom(&op);
      claimed.insert(claim.ops.begin(), claim.ops.end());
      if (!claim.ops.empty())
        claims.push_back(std::move(claim));
    }
    return claims;
  }

private:
  bool isOpen(Operation *op) {
    // A view belongs to no group, but a card may read through it.
    bool mayBe = isa<graph::ReshapeOp>(op) || !isHost(op);
    return op->getBlock() == &block && mayBe && !claimed.contains(op);
  }

  Claim growFrom(Operation *skeleton) {
    members = {skeleton};
    archive = {};
    std::string form;
    Fit fit = cards.fit(members, target, form);
    if (fit == Fit::No)
      return {};
    if (fit == Fit::Full)
      archive = {members, form};
    do
      addPrologues();
    while (addEpilogue());
    giveBack();
    return std::move(archive);
  }

  /// Gives back what is better elsewhere, where the rest still matches: prologues that can be the
  /// epilogue of another skeleton op, those that are costly to compute again for each reader, and
  /// views at the rim, which are free outside.
  void giveBack() {
    for (bool isShrinking = true; isShrinking;) {
      isShrinking = false;
      for (Operation *op : archive.ops) {
        if (!isBetterOutside(op))
          continue;
        SmallVector<Operation *> rest(archive.ops);
        llvm::erase(rest, op);
        std::string form;
        if (rest.empty() || cards.fit(rest, target, form) != Fit::Full)
          continue;
        archive = {std::move(rest), form};
        isShrinking = true;
        break;
      }
    }
  }

  bool isBetterOutside(Operation *op) {
    auto isInside = [&](Operation *other) { return llvm::is_contained(archive.ops, other); };
    bool isPrologue = llvm::none_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && isInside(operand.getDefiningOp());
    });
    if (isa<graph::ReshapeOp>(op))
      return isHost(op) && (isPrologue ? !readsMove(op) : op == archive.ops.back());
    if (!isPrologue || !graph::isElementwise(op))
      return false;
    return graph::isCostly(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
             Operation *source = operand.getDefiningOp();
             return source && isOpen(source) && warehouse::decides(source);
           });
  }

  /// A view of what only moved: it saves the move's copy where it is read through.
  static bool readsMove(Operation *reshape) {
    Operation *source = reshape->getOperand(0).getDefiningOp();
    return source && graph::isMovement(source) && !isa<graph::ReshapeOp>(source);
  }

  /// The members with this op, operands first, when some card still may match them.
  bool tryAdd(Operation *op) {
    if (members.size() >= kMostOps)
      return false;
    SmallVector<Operation *> wider(members);
    wider.insert(
        llvm::upper_bound(wider, op,
                          [&](Operation *a, Operation *b) { return places.at(a) < places.at(b); }),
        op);
    std::string form;
    Fit fit = cards.fit(wider, target, form);
    if (fit == Fit::No)
      return false;
    members = std::move(wider);
    if (fit == Fit::Full)
      archive = {members, form};
    return true;
  }

  bool isReadInside(Operation *op) {
    return llvm::all_of(op->getUsers(),
                        [&](Operation *user) { return llvm::is_contained(members, user); });
  }

  void addPrologues() {
    llvm::DenseSet<Operation *> refused;
    for (bool isGrowing = true; isGrowing;) {
      isGrowing = false;
      for (size_t i = members.size(); i-- > 0 && !isGrowing;)
        for (Value operand : members[i]->getOperands()) {
          Operation *producer = operand.getDefiningOp();
          if (!producer || !isOpen(producer) || llvm::is_contained(members, producer) ||
              refused.contains(producer) || !isReadInside(producer))
            continue;
          isGrowing = tryAdd(producer);
          if (isGrowing)
            break;
          refused.insert(producer);
        }
    }
  }

  /// The one op that reads the root, wherever in it.
  bool addEpilogue() {
    Operation *reader = nullptr;
    for (Operation *user : members.back()->getUsers()) {
      if (reader && user != reader)
        return false;
      reader = user;
    }
    return reader && isOpen(reader) && tryAdd(reader);
  }

  Block &block;
  const warehouse::Warehouse &cards;
  StringRef target;
  llvm::function_ref<bool(Operation *)> isHost;
  llvm::DenseMap<Operation *, int64_t> places; // in the block
  llvm::DenseSet<Operation *> claimed;
  SmallVector<Operation *> members; // of the subgraph that grows, operands first
  Claim archive;                    // its latest full match
};
} // namespace

std::vector<Claim> growClaims(Block &block, const warehouse::Warehouse &cards, StringRef target,
                              llvm::function_ref<bool(Operation *)> isHost) {
  return Grower(block, cards, target, isHost).run();
}

} // namespace heddle::partition
