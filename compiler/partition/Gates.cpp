// Gates: a product that is read in parts only, and what follows from those element by element,
// become one group: the cell of an LSTM, the first step of a GRU's, a gated linear unit. The parts
// of one element then meet in registers.

#include "compiler/partition/Partitioner.h"

#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::partition {

/// More would leave too few registers for rows.
static constexpr int64_t kMostParts = 4;

void Partitioner::joinGates() {
  for (size_t i = 0, count = groups.size(); i < count; ++i)
    if (options.fuses && !groups[i].members.empty() && groups[i].is(mechanism::kContraction) &&
        !groups[i].isGates)
      joinReaders(groups[i]);
}

/// The group of the op, where ops of it may go into another one.
Group *Partitioner::openGroupOf(Operation *op) {
  auto known = groupOf.find(op);
  if (known == groupOf.end())
    return nullptr;
  Group &group = groups[known->second];
  bool isOpen = !group.isClaimed && !group.isGates && group.alsoRead.empty() &&
                (group.is(mechanism::kPointwise) || group.is(mechanism::kContraction));
  return isOpen ? &group : nullptr;
}

/// What an op of `group` may read besides `taken`: what is outside of the group, or can be
/// computed anew beside it; such ops are added.
bool Partitioner::addOperands(Operation *op, Group &group, SetVector<Operation *> &taken) {
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
SetVector<Operation *> Partitioner::readersOf(ArrayRef<Operation *> slices) {
  SetVector<Operation *> taken;
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
/// it is the only one in the block that reads what it reads of these, so that no more results leave
/// the group; what the block yields leaves it in any case.
SetVector<Operation *> Partitioner::followersOf(ArrayRef<Operation *> slices) {
  SetVector<Operation *> taken;
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
                   return other == user || taken.contains(other) || other == block.getTerminator();
                 });
        };
        SetVector<Operation *> more = taken;
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

void Partitioner::joinReaders(Group &product) {
  Value whole = product.root()->getResult(0);
  SmallVector<Operation *> slices(whole.getUsers());
  auto parts = mechanism::partsOf(slices, graph::dimsOf(whole));
  if (!parts || parts->count < 2 || parts->count > kMostParts)
    return;
  for (const Ops &readers : {readersOf(slices), followersOf(slices)})
    if (!readers.empty() && joinIfFits(product, readers))
      return;
}

bool Partitioner::joinIfFits(Group &product, Ops taken) {
  Operation *last = *llvm::max_element(
      taken, [&](Operation *a, Operation *b) { return places.at(a) < places.at(b); });
  taken.insert(product.members.begin(), product.members.end());
  // All that others read is read after the last op, where the group will stand.
  auto isBehind = [&](Operation *user) {
    user = block.findAncestorOpInBlock(*user);
    auto known = groupOf.find(user);
    Operation *reader = known == groupOf.end() ? user : groups[known->second].root();
    return taken.contains(user) || places.at(reader) > places.at(last);
  };
  bool fits = taken.size() <= kMostOps && !isRefused(last, kGates) &&
              llvm::all_of(taken, [&](Operation *op) {
                return isWanted(op, last) && llvm::all_of(op->getUsers(), isBehind);
              });
  fits = fits && serves(mechanism::kContraction, taken);
  if (fits)
    join(product, taken, last);
  return fits;
}

void Partitioner::join(Group &product, const SetVector<Operation *> &taken, Operation *last) {
  Group made;
  made.mechanism = &mechanism::kContraction;
  made.onlyElementwise = false;
  made.isGates = true;
  size_t index = &product - groups.data();
  for (Operation *op : taken) {
    llvm::erase(groups[groupOf.at(op)].members, op);
    made.members.push_back(op);
    groupOf[op] = index;
    bool isRead = llvm::any_of(op->getUsers(), [&](Operation *user) {
      return !taken.contains(block.findAncestorOpInBlock(*user));
    });
    if (isRead && op != last)
      made.alsoRead.push_back(op->getResult(0));
  }
  llvm::sort(made.members, [&](Operation *a, Operation *b) { return places.at(a) > places.at(b); });
  product = std::move(made);
}

} // namespace heddle::partition
