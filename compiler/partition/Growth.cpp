// Growth: prologues and epilogues around a skeleton op, with the archive of the latest match.

#include "compiler/partition/Growth.h"

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/partition/order/Sequence.h"

using namespace mlir;

namespace heddle::partition {

using warehouse::Fit;

namespace {
class Grower {
public:
  Grower(Groups &groups, const warehouse::Warehouse &cards)
      : groups(groups), block(groups.block), cards(cards) {
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
    return op->getBlock() == &block && mayBe && !claimOf.contains(op) && !groups.has(op);
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

  /// The cards' answer for the ops, and the mechanism that it is for.
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

  /// Gives back what is better outside, where the rest still matches.
  void giveBack() {
    for (bool isShrinking = true; isShrinking;) {
      isShrinking = false;
      for (Operation *op : archive.ops) {
        if (!groups.policy.givesBack(op, archive.ops,
                                     [&](Operation *other) { return isOpen(other); }))
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

  Groups &groups;
  Block &block;
  const warehouse::Warehouse &cards;
  llvm::DenseMap<Operation *, int64_t> places; // in the block
  std::vector<Claim> claims;
  llvm::DenseMap<Operation *, size_t> claimOf;
  const mechanism::Mechanism *mechanism = nullptr; // the only one that is asked for
  bool several = false;                            // whether members may be read elsewhere
  SmallVector<Operation *> members;                // of the subgraph that grows, operands first
  Claim archive;                                   // its latest full match
};
} // namespace

/// Whether ops of another claim or of none read what is made before the last op.
static bool isReadBetween(const Claim &claim, Block &block) {
  return llvm::any_of(ArrayRef(claim.ops).drop_back(), [&](Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      return !llvm::is_contained(claim.ops, block.findAncestorOpInBlock(*user));
    });
  });
}

void moveReadersBehind(std::vector<Claim> &claims, Groups &groups) {
  llvm::DenseMap<Operation *, Operation *> lastOf;               // of a claim's ops
  llvm::DenseMap<Operation *, SmallVector<Operation *>> members; // by their last, last to first
  auto membersOf = [&](Operation *head) {
    if (Group *group = groups.of(head))
      return group->members;
    auto claim = members.find(head);
    return claim == members.end() ? SmallVector<Operation *>{head} : claim->second;
  };
  auto headOf = [&](Operation *op) {
    op = groups.headOf(op);
    auto last = lastOf.find(op);
    return last == lastOf.end() ? op : last->second;
  };
  std::optional<Sequence> sequence;
  llvm::erase_if(claims, [&](const Claim &claim) {
    if (!isReadBetween(claim, groups.block))
      return false;
    if (!sequence)
      sequence.emplace(groups.block, membersOf, headOf);
    SmallVector<Operation *> ops(claim.ops);
    llvm::sort(ops, [&](Operation *a, Operation *b) { return sequence->isBefore(a, b); });
    if (!sequence->mayJoin(ops))
      return true;
    sequence->join(ops);
    for (Operation *op : ops)
      lastOf[op] = ops.back();
    members[ops.back()].assign(ops.rbegin(), ops.rend());
    return false;
  });
  for (Claim &claim : claims)
    llvm::sort(claim.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

std::vector<Claim> growClaims(Groups &groups, const warehouse::Warehouse &cards,
                              std::vector<Claim> begun) {
  return Grower(groups, cards).run(std::move(begun));
}

} // namespace heddle::partition
