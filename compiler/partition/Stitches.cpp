// Stitches: a product and the reductions over the rows of its result become one group (Apollo's
// Layer II).

#include "compiler/partition/Steps.h"

using namespace mlir;

namespace heddle::partition {

/// Inside of the rows at its own place; outside after their root, where the group will stand.
static bool isReadRight(Operation *user, Groups &groups, const Group &rows) {
  user = groups.block.findAncestorOpInBlock(*user);
  if (groups.of(user) == &rows)
    return graph::isElementwise(user) || !graph::reducedAxes(user).empty();
  return groups.placeOf(groups.headOf(user)) > groups.placeOf(rows.root());
}

/// Whether the product, whose result is `between`, and the rows may be one and the policy or the
/// plan wants that.
static bool fits(Value between, const Group &product, Groups &groups, const Group &rows) {
  Operation *root = rows.root(), *last = between.getDefiningOp();
  bool mayBe = product.is(mechanism::kContraction) && !product.isGates && product.root() == last &&
               product.members.size() + rows.members.size() <= kMostOps &&
               groups.wishes.allows(product.members, root) &&
               llvm::all_of(last->getUsers(),
                            [&](Operation *user) { return isReadRight(user, groups, rows); });
  bool isWanted = mayBe && (groups.policy.stitches(product, rows) ||
                            groups.wishes.asksFor(product.members, root));
  OpSet all(product.members.begin(), product.members.end());
  all.insert(rows.members.begin(), rows.members.end());
  return isWanted && groups.serves(mechanism::kStitch, all);
}

/// The group of the product whose rows this reduction of `rows` reduces, if the two can be one:
/// where the product's result is read elsewhere, that has to be after the rows' root.
static Group *productBefore(Operation *fold, Groups &groups, const Group &rows) {
  ArrayRef<int64_t> axes = graph::reducedAxes(fold);
  if (axes.size() != 1 || !groups.options.fuses ||
      groups.wishes.refuses(rows.root(), mechanism::kStitch.name))
    return nullptr;
  graph::DimVector dims = graph::dimsOf(fold->getOperand(0));
  for (Operation *member : rows.members)
    for (Value between : member->getOperands()) {
      Operation *last = between.getDefiningOp();
      Group *product = last ? groups.of(last) : nullptr;
      if (product && graph::dimsOf(between) == dims && fits(between, *product, groups, rows))
        return product;
    }
  return nullptr;
}

static void join(Group &product, Group &rows, Groups &groups) {
  Operation *last = product.root();
  size_t index = *groups.indexOf(rows.root());
  if (llvm::any_of(last->getUsers(), [&](Operation *user) {
        return groups.of(groups.block.findAncestorOpInBlock(*user)) != &rows;
      }))
    rows.alsoRead.push_back(last->getResult(0));
  for (Operation *member : product.members)
    groups.move(member, index);
  rows.members.append(product.members);
  groups.sort(rows.members);
  rows.mechanism = &mechanism::kStitch;
  product.members.clear();
}

void stitch(Groups &groups) {
  for (Group &rows : groups)
    if (rows.is(mechanism::kRows))
      for (Operation *member : rows.members)
        if (Group *product = productBefore(member, groups, rows)) {
          join(*product, rows, groups);
          break;
        }
}

} // namespace heddle::partition
