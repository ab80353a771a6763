// Stitches: a product and the reductions over the rows of its result become one group (Apollo's
// Layer II).

#include "compiler/partition/Partitioner.h"

#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::partition {

/// Apollo's Layer II: the rows of a product's result and the reductions over them.
void Partitioner::stitchAll() {
  for (Group &rows : groups)
    if (rows.is(mechanism::kRows))
      for (Operation *member : rows.members)
        if (Group *product = productBefore(member, rows)) {
          stitch(*product, rows);
          break;
        }
}

/// The group of the product whose rows this reduction of `rows` reduces, if the two can be one:
/// where the product's result is read elsewhere, that has to be after the rows' root.
Group *Partitioner::productBefore(Operation *fold, Group &rows) {
  ArrayRef<int64_t> axes = graph::reducedAxes(fold);
  Operation *root = rows.root();
  if (axes.size() != 1 || !options.fuses || isRefused(root, mechanism::kStitch.name))
    return nullptr;
  graph::DimVector dims = graph::dimsOf(fold->getOperand(0));
  for (Operation *member : rows.members)
    for (Value between : member->getOperands()) {
      Operation *last = between.getDefiningOp();
      auto known = last ? groupOf.find(last) : groupOf.end();
      if (known == groupOf.end() || graph::dimsOf(between) != dims)
        continue;
      Group &product = groups[known->second];
      bool fits =
          product.is(mechanism::kContraction) && !product.isGates && product.root() == last &&
          product.members.size() + rows.members.size() <= kMostOps &&
          llvm::all_of(product.members, [&](Operation *op) { return isWanted(op, root); }) &&
          llvm::all_of(last->getUsers(), [&](Operation *user) { return isReadRight(user, rows); });
      llvm::SetVector<Operation *> all(product.members.begin(), product.members.end());
      all.insert(rows.members.begin(), rows.members.end());
      if (fits && serves(mechanism::kStitch, all))
        return &product;
    }
  return nullptr;
}

/// Inside of the rows at its own place; outside after their root, where the group will stand.
bool Partitioner::isReadRight(Operation *user, Group &rows) {
  user = block.findAncestorOpInBlock(*user);
  auto known = groupOf.find(user);
  if (known == groupOf.end())
    return places.at(user) > places.at(rows.root());
  Group &reader = groups[known->second];
  if (&reader == &rows)
    return graph::isElementwise(user) || !graph::reducedAxes(user).empty();
  return places.at(reader.root()) > places.at(rows.root());
}

void Partitioner::stitch(Group &product, Group &rows) {
  Operation *last = product.root();
  size_t index = groupOf.at(rows.root());
  if (llvm::any_of(last->getUsers(), [&](Operation *user) {
        auto known = groupOf.find(block.findAncestorOpInBlock(*user));
        return known == groupOf.end() || known->second != index;
      }))
    rows.alsoRead.push_back(last->getResult(0));
  for (Operation *member : product.members)
    groupOf[member] = index;
  rows.members.append(product.members);
  llvm::sort(rows.members, [&](Operation *a, Operation *b) { return places.at(a) > places.at(b); });
  rows.mechanism = &mechanism::kStitch;
  product.members.clear();
}

} // namespace heddle::partition
