// Gates: a product that is read in parts only, and what follows from those element by element,
// become one group: the cell of an LSTM, the first step of a GRU's, a gated linear unit. The parts
// of one element then meet in registers.

#include "compiler/mechanism/Shapes.h"
#include "compiler/partition/Steps.h"

using namespace mlir;

namespace heddle::partition {

namespace {
class Gates {
public:
  explicit Gates(Groups &groups) : groups(groups) {}

  void joinReaders(size_t index) {
    Value whole = groups[index].root()->getResult(0);
    SmallVector<Operation *> slices(whole.getUsers());
    auto parts = mechanism::partsOf(slices, graph::dimsOf(whole));
    if (!parts || parts->count < 2)
      return;
    for (const OpSet &readers : {readersOf(slices), followersOf(slices)})
      if (!readers.empty() && joinIfFits(index, readers, parts->count))
        return;
  }

private:
  /// The group of the op, where ops of it may go into another one.
  Group *openGroupOf(Operation *op) {
    Group *group = groups.of(op);
    bool isOpen = group && !group->isClaimed && !group->isGates && group->alsoRead.empty() &&
                  (group->is(mechanism::kPointwise) || group->is(mechanism::kContraction));
    return isOpen ? group : nullptr;
  }

  /// Adds ops of `group` that `op` reads and that can be computed anew beside it; whether all else
  /// that it reads is in `taken` or outside of the group.
  bool addOperands(Operation *op, Group &group, OpSet &taken) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      Operation *made = operand.getDefiningOp();
      if (!made || taken.contains(made) || !llvm::is_contained(group.members, made))
        return true;
      if (!isa<graph::BroadcastOp, graph::SliceOp>(made) || !made->hasOneUse() ||
          !addOperands(made, group, taken))
        return false;
      taken.insert(made);
      return true;
    });
  }

  /// The whole groups of the slices, where they are computed element by element.
  OpSet readersOf(ArrayRef<Operation *> slices) {
    OpSet taken;
    for (Operation *slice : slices) {
      Group *group = openGroupOf(slice);
      if (!group || !group->is(mechanism::kPointwise) || !group->onlySlices ||
          graph::dimsOf(group->root()->getResult(0)) != graph::dimsOf(slice->getResult(0)))
        return {};
      taken.insert(group->members.begin(), group->members.end());
    }
    return taken;
  }

  /// Slices of the product's result and elementwise ops after them: an op goes with its operands if
  /// it is the only one in the block that reads what it reads of these, so that no more results
  /// leave the group; what the block yields leaves it in any case.
  OpSet followersOf(ArrayRef<Operation *> slices) {
    OpSet taken;
    for (Operation *slice : slices)
      if (openGroupOf(slice))
        taken.insert(slice);
      else
        return {};
    for (bool grows = true; grows;) {
      grows = false;
      for (size_t i = 0; i < taken.size(); ++i) {
        for (Operation *user : taken[i]->getUsers()) {
          Group *group = openGroupOf(user);
          if (!group || !graph::isElementwise(user) || taken.contains(user))
            continue;
          auto isOnlyReader = [&](Value operand) {
            return !operand.getDefiningOp() || !taken.contains(operand.getDefiningOp()) ||
                   llvm::all_of(operand.getUsers(), [&](Operation *other) {
                     return other == user || taken.contains(other) ||
                            other == groups.block.getTerminator();
                   });
          };
          OpSet more = taken;
          if (!llvm::all_of(user->getOperands(), isOnlyReader) || !addOperands(user, *group, more))
            continue;
          taken = more;
          taken.insert(user);
          grows = true;
        }
      }
    }
    return taken;
  }

  bool joinIfFits(size_t index, OpSet taken, int64_t parts) {
    Group &product = groups[index];
    Operation *last = *llvm::max_element(
        taken, [&](Operation *a, Operation *b) { return groups.placeOf(a) < groups.placeOf(b); });
    taken.insert(product.members.begin(), product.members.end());
    // All that others read is read after the last op, where the group will stand.
    auto isBehind = [&](Operation *user) {
      return taken.contains(groups.block.findAncestorOpInBlock(*user)) ||
             groups.placeOf(groups.headOf(user)) > groups.placeOf(last);
    };
    bool mayBe =
        taken.size() <= kMostOps && !groups.wishes.refuses(last, kGates) &&
        groups.wishes.allows(taken.getArrayRef(), last) &&
        llvm::all_of(taken, [&](Operation *op) { return llvm::all_of(op->getUsers(), isBehind); });
    bool isWanted = mayBe && (groups.policy.joinsParts(product, parts) ||
                              groups.wishes.asksFor(taken.getArrayRef(), last));
    if (!isWanted || !groups.serves(mechanism::kContraction, taken))
      return false;
    join(index, taken, last);
    return true;
  }

  void join(size_t index, const OpSet &taken, Operation *last) {
    Group made;
    made.mechanism = &mechanism::kContraction;
    made.onlyElementwise = false;
    made.isGates = true;
    for (Operation *op : taken) {
      llvm::erase(groups.of(op)->members, op);
      made.members.push_back(op);
      groups.move(op, index);
      bool isRead = llvm::any_of(op->getUsers(), [&](Operation *user) {
        return !taken.contains(groups.block.findAncestorOpInBlock(*user));
      });
      if (isRead && op != last)
        made.alsoRead.push_back(op->getResult(0));
    }
    groups.sort(made.members);
    groups[index] = std::move(made);
  }

  Groups &groups;
};
} // namespace

void joinGates(Groups &groups) {
  Gates gates(groups);
  for (size_t i = 0, count = groups.size(); i < count; ++i)
    if (groups.options.fuses && !groups[i].members.empty() &&
        groups[i].is(mechanism::kContraction) && !groups[i].isGates)
      gates.joinReaders(i);
}

} // namespace heddle::partition
