// Growth: prologues and epilogues around a skeleton op, with the archive of the latest match.

#include "compiler/partition/Growth.h"

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::partition {

using warehouse::Fit;

namespace {
class Grower {
public:
  Grower(Block &block, const warehouse::Warehouse &cards, IsHost isHost)
      : block(block), cards(cards), isHost(isHost) {
    int64_t number = 0;
    for (Operation &op : block)
      places[&op] = number++;
  }

  std::vector<Claim> run(std::vector<Claim> begun) {
    for (Claim &claim : begun)
      add(growOn(std::move(claim)));
    for (Operation &op : llvm::reverse(block)) {
      if (!isOpen(&op) || !warehouse::decides(&op))
        continue;
      Claim claim = growFrom(&op, false);
      Claim wider = growFrom(&op, true);
      add(std::move(wider.ops.size() > claim.ops.size() ? wider : claim));
    }
    return std::move(claims);
  }

private:
  void add(Claim claim) {
    for (Operation *member : claim.ops)
      claimOf[member] = claims.size();
    if (!claim.ops.empty())
      claims.push_back(std::move(claim));
  }

  Claim growOn(Claim begun) {
    several = true;
    members = begun.ops;
    mechanism = begun.mechanism;
    archive = isConvex(members) ? std::move(begun) : Claim();
    if (!archive.ops.empty()) {
      do
        addPrologues();
      while (addReader());
      giveBack();
    }
    mechanism = nullptr;
    return std::move(archive);
  }

  bool isOpen(Operation *op) {
    // A view belongs to no group, but a card may read through it.
    bool mayBe = isa<graph::ReshapeOp>(op) ? !graph::joinsRows(op) : !isHost(op);
    return op->getBlock() == &block && mayBe && !claimOf.contains(op);
  }

  Claim growFrom(Operation *skeleton, bool hasSeveral) {
    several = hasSeveral;
    members = {};
    archive = {};
    if (!tryAdd(skeleton))
      return {};
    do
      addPrologues();
    while (several ? addReader() : addEpilogue());
    giveBack();
    return std::move(archive);
  }

  /// What cards make of the ops, and the mechanism by which they do.
  std::pair<Fit, const mechanism::Mechanism *> fitOf(ArrayRef<Operation *> ops) const {
    if (!mechanism)
      return cards.fit(ops, several);
    return {cards.takes(ops, *mechanism) ? Fit::Full : Fit::No, mechanism};
  }

  /// Whether no path leads out of these ops and back, through other claims as a whole too.
  bool isConvex(ArrayRef<Operation *> ops) const {
    llvm::SmallPtrSet<Operation *, 32> inside(ops.begin(), ops.end()), seen;
    SmallVector<Operation *> open(ops.begin(), ops.end());
    while (!open.empty()) {
      Operation *op = open.pop_back_val();
      for (Operation *user : op->getUsers()) {
        user = block.findAncestorOpInBlock(*user);
        if (inside.contains(user) && !inside.contains(op))
          return false;
        if (inside.contains(user) || !seen.insert(user).second)
          continue;
        open.push_back(user);
        if (auto claim = claimOf.find(user); claim != claimOf.end())
          for (Operation *other : claims[claim->second].ops)
            if (seen.insert(other).second)
              open.push_back(other);
      }
    }
    return true;
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
        if (rest.empty())
          continue;
        auto [fit, found] = fitOf(rest);
        if (fit != Fit::Full)
          continue;
        archive = {std::move(rest), found};
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
    if (members.size() >= kMostOps ||
        (!members.empty() && graph::rowsOf(op) != graph::rowsOf(members.front())))
      return false;
    SmallVector<Operation *> wider(members);
    wider.insert(
        llvm::upper_bound(wider, op,
                          [&](Operation *a, Operation *b) { return places.at(a) < places.at(b); }),
        op);
    auto [fit, found] = fitOf(wider);
    if (fit == Fit::No)
      return false;
    members = std::move(wider);
    if (fit == Fit::Full && (!several || isConvex(members)))
      archive = {members, found};
    return true;
  }

  bool isReadInside(Operation *op) {
    return several || llvm::all_of(op->getUsers(), [&](Operation *user) {
             return llvm::is_contained(members, user);
           });
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

  /// Any op that reads a member, the first that may be added.
  bool addReader() {
    for (Operation *member : SmallVector<Operation *>(members))
      for (Operation *user : member->getUsers())
        if (!llvm::is_contained(members, user) && isOpen(user) && tryAdd(user))
          return true;
    return false;
  }

  Block &block;
  const warehouse::Warehouse &cards;
  IsHost isHost;
  llvm::DenseMap<Operation *, int64_t> places; // in the block
  std::vector<Claim> claims;
  llvm::DenseMap<Operation *, size_t> claimOf;
  const mechanism::Mechanism *mechanism = nullptr; // the only one that is asked for
  bool several = false;                            // whether members may be read elsewhere
  SmallVector<Operation *> members;                // of the subgraph that grows, operands first
  Claim archive;                                   // its latest full match
};
} // namespace

/// Moves what is between the ops and follows from them after the last one.
static void moveReadersBehind(ArrayRef<Operation *> ops) {
  llvm::SmallPtrSet<Operation *, 32> inside(ops.begin(), ops.end()), moved;
  Operation *last = ops.back(), *end = last;
  for (Operation *op = ops.front(), *next; op != last; op = next) {
    next = op->getNextNode();
    if (inside.contains(op))
      continue;
    bool follows = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *source = operand.getDefiningOp())
          follows |= inside.contains(source) || moved.contains(source);
    });
    if (!follows)
      continue;
    op->moveAfter(end);
    moved.insert(op);
    end = op;
  }
}

std::vector<Claim> growClaims(Block &block, const warehouse::Warehouse &cards, IsHost isHost,
                              std::vector<Claim> begun) {
  std::vector<Claim> claims = Grower(block, cards, isHost).run(std::move(begun));
  for (const Claim &claim : claims)
    moveReadersBehind(claim.ops);
  for (Claim &claim : claims)
    llvm::sort(claim.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return claims;
}

} // namespace heddle::partition
