// Groups: see Groups.h.

#include "compiler/partition/Groups.h"

using namespace mlir;

namespace heddle::partition {

std::optional<size_t> Groups::indexOf(Operation *op) const {
  auto known = indices.find(op);
  return known == indices.end() ? std::nullopt : std::optional(known->second);
}

Group *Groups::of(Operation *op) {
  auto index = indexOf(op);
  return index ? &all[*index] : nullptr;
}

Operation *Groups::headOf(Operation *op) const {
  op = block.findAncestorOpInBlock(*op);
  auto index = op ? indexOf(op) : std::nullopt;
  return index ? all[*index].root() : op;
}

size_t Groups::add(Group group) {
  for (Operation *member : group.members)
    indices[member] = all.size();
  all.push_back(std::move(group));
  return all.size() - 1;
}

void Groups::put(Operation *op, size_t index) {
  all[index].members.push_back(op);
  indices[op] = index;
}

void Groups::erase(Group &group) {
  for (Operation *member : group.members) {
    indices.erase(member);
    member->erase();
  }
  group.members.clear();
}

void Groups::notePlaces() {
  for (Operation &op : block)
    places[&op] = places.size();
}

void Groups::sort(MutableArrayRef<Operation *> members) const {
  llvm::sort(members, [&](Operation *a, Operation *b) { return placeOf(a) > placeOf(b); });
}

bool Groups::serves(const Mechanism &mechanism, OpSet ops) const {
  auto ordered = ops.takeVector();
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return servesInOrder(mechanism, ordered);
}

bool Groups::servesInOrder(const Mechanism &mechanism, ArrayRef<Operation *> ordered) const {
  return mechanism.fits(ordered).isFull() &&
         (!options.cards || options.cards->takes(ordered, mechanism));
}

static std::string uniqueName(Operation *root) {
  std::string name = graph::sourceName(root->getLoc());
  if (name.empty())
    name = root->getName().stripDialect().str();
  return name;
}

void Groups::wrap() {
  for (Group &group : all) {
    if (group.members.empty())
      continue; // part of another one
    Operation *root = group.root();
    SmallVector<Value> results(root->getResults());
    llvm::append_range(results, group.alsoRead);
    OpBuilder builder(root);
    auto wrapped = builder.create<graph::GroupOp>(root->getLoc(), TypeRange(ValueRange(results)),
                                                  uniqueName(root), group.mechanism->name);
    Block *body = builder.createBlock(&wrapped.getBody());
    for (Operation *member : llvm::reverse(group.members))
      member->moveBefore(body, body->end());
    for (auto [inside, outside] : llvm::zip(results, wrapped.getResults()))
      inside.replaceUsesWithIf(
          outside, [&](OpOperand &use) { return !wrapped->isAncestor(use.getOwner()); });
    builder.setInsertionPointToEnd(body);
    builder.create<graph::YieldOp>(root->getLoc(), results);
  }
}

} // namespace heddle::partition
