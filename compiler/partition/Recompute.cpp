// Recompute: what is cheap and read by a few groups becomes part of each (Apollo, Zhao et al.,
// MLSys 2022), where that moves no more bytes.

#include "compiler/partition/Partitioner.h"

#include "compiler/mechanism/Shapes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace heddle::partition {

/// Apollo's recompute: what is cheap and read by a few groups becomes part of each, where reading
/// its operand once more moves no more bytes than reading its result.
void Partitioner::giveToReaders(Group &group) {
  std::set<size_t> readers;
  if (!(isWantedByReaders(group) || isCheap(group)) || !findReaders(group.root(), readers))
    return;
  for (size_t reader : readers)
    if (!takesCopies(groups[reader], group))
      return;
  for (size_t reader : readers)
    addCopies(groups[reader], reader, group);
  for (Operation *member : group.members) {
    groupOf.erase(member);
    member->erase();
  }
  group.members.clear();
}

/// Whether a plan wants the group's node joined to all that read it, or has no line for the group,
/// but has its ops in those of others. Where a node of the model stands for more ops than these,
/// its name does not say that of them.
bool Partitioner::isWantedByReaders(const Group &group) const {
  if (!group.is(mechanism::kPointwise) || group.isClaimed || group.members.empty())
    return false;
  if (options.joined.count(graph::sourceName(group.root()->getLoc())))
    return llvm::all_of(group.members, [](Operation *op) { return op->getNumResults() == 1; });
  if (options.wanted.empty() || options.wanted.count(graph::sourceName(group.root()->getLoc())))
    return false;
  return llvm::all_of(group.members, [&](Operation *member) {
    std::string name = graph::sourceName(member->getLoc());
    auto isOfNode = [&](Operation &op) { return graph::sourceName(op.getLoc()) == name; };
    return member->getNumResults() == 1 &&
           llvm::count_if(options.wanted, [&](auto &each) { return each.second.count(name) > 0; }) >
               1 &&
           llvm::count_if(block, isOfNode) ==
               llvm::count_if(group.members, [&](Operation *op) { return isOfNode(*op); });
  });
}

bool Partitioner::isCheap(const Group &group) const {
  if (!group.is(mechanism::kPointwise) || !group.onlyElementwise || group.isClaimed ||
      group.members.empty() || group.members.size() > kMostCopied || !options.fuses)
    return false;
  Value result = group.root()->getResult(0);
  int64_t bytes = 0; // of an element of all that it reads
  for (Operation *member : group.members) {
    if (isExpensive(member) || member->hasAttr(graph::kIsStored) || member->getNumResults() != 1 ||
        isRefused(member, group.mechanism->name))
      return false;
    for (Value operand : member->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (llvm::is_contained(group.members, source) || isa_and_nonnull<graph::ConstantOp>(source))
        continue;
      // What only this group reads may take it in as its epilogue.
      if (source && groupOf.contains(source) && operand.hasOneUse())
        return false;
      if (graph::dimsOf(operand) == graph::dimsOf(result))
        bytes += graph::bytesOf(graph::elementOf(operand));
      else if (!isa<graph::BroadcastOp>(member))
        return false;
    }
  }
  return bytes <= graph::bytesOf(graph::elementOf(result));
}

/// The groups of all who read the op's result; false when somebody else does, or too many.
bool Partitioner::findReaders(Operation *root, std::set<size_t> &readers) {
  for (Operation *user : root->getUsers()) {
    auto known = groupOf.find(user);
    if (known == groupOf.end())
      return false;
    readers.insert(known->second);
  }
  return readers.size() > 1 && readers.size() <= kMostCopied;
}

bool Partitioner::takesCopies(Group &reader, const Group &group) {
  return llvm::all_of(group.members, [&](Operation *member) { return mayJoin(member, reader); }) &&
         llvm::all_of(group.root()->getUsers(), [&](Operation *user) {
           return groupOf.at(user) != groupOf.at(reader.root()) || graph::isElementwise(user) ||
                  !graph::reducedAxes(user).empty();
         });
}

void Partitioner::addCopies(Group &reader, size_t index, const Group &group) {
  IRMapping copies;
  OpBuilder builder(group.root());
  SmallVector<Operation *> made;
  for (Operation *member : llvm::reverse(group.members))
    made.push_back(builder.clone(*member, copies));
  Value result = group.root()->getResult(0);
  result.replaceUsesWithIf(copies.lookup(result), [&](OpOperand &use) {
    auto known = groupOf.find(use.getOwner());
    return known != groupOf.end() && known->second == index;
  });
  for (Operation *copy : llvm::reverse(made)) {
    reader.members.push_back(copy);
    groupOf[copy] = index;
  }
}

} // namespace heddle::partition
