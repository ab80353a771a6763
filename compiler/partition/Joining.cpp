// Joining: Apollo's Layer I (Zhao et al., MLSys 2022): one walk over the ops of a block, last to
// first; an op joins the group of its users if all of them are in one group, the table of
// mechanisms says that the two may be one kernel, and the policy that it pays.

#include "compiler/partition/Joining.h"

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/partition/Steps.h"

using namespace mlir;

namespace heddle::partition {

/// Whether the mechanism serves the group with the op. If neither group is served, all is computed
/// element by element, which any op allows.
bool Joining::mayGrow(const Mechanism &mechanism, Operation *op, const Group &group) const {
  OpSet before(group.members.begin(), group.members.end()), after(before);
  after.insert(op);
  if (groups.serves(mechanism, after))
    return true;
  if (&mechanism == &mechanism::kRows) // a pass over the row for each reduction
    return false;
  if (!group.is(mechanism))
    before = OpSet(&op, &op + 1);
  return !groups.serves(mechanism, before);
}

static bool isSliced(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<graph::SliceOp>(user); });
}

bool Joining::pays(Operation *op, const Group &group) const {
  auto isGrouped = [&](Operation *other) { return groups.has(other); };
  auto joins = [&](Operation *other) { return mayJoin(other, group); };
  return groups.policy.pays(op, group, {isGrouped, joins});
}

bool Joining::mayJoin(Operation *op, const Group &group) const {
  Operation *root = group.root();
  if (op->hasAttr(graph::kIsStored) || group.isClaimed || !groups.options.fuses ||
      group.members.size() >= kMostOps || isAlone(op) || !groups.wishes.allows(op, root) ||
      graph::rowsOf(op) != graph::rowsOf(root))
    return false;
  const Mechanism *brought = mechanismOf(op);
  bool bringsLoops = brought != &mechanism::kPointwise, isSerial = group.is(mechanism::kSerial);
  if (!isSerial && isAlone(root))
    return false;
  // A product that is read in parts is for Gates.cpp.
  bool isAsked =
      groups.wishes.asksFor(op, root) && !(brought == &mechanism::kContraction && isSliced(op));
  StringRef step = (bringsLoops && !isSerial ? brought : group.mechanism)->name;
  if (groups.wishes.refuses(root, step) || !(isAsked || pays(op, group)))
    return false;
  if (isSerial) {
    OpSet all(group.members.begin(), group.members.end());
    all.insert(op);
    return groups.serves(mechanism::kSerial, all);
  }
  if (bringsLoops)
    return (group.is(mechanism::kPointwise) ||
            (brought == &mechanism::kRows && group.is(mechanism::kRows))) &&
           mayGrow(*brought, op, group);
  // Element by element, any op may join.
  return group.is(mechanism::kPointwise) || mayGrow(*group.mechanism, op, group);
}

/// The one group that reads all results of op, if there is one.
std::optional<size_t> Joining::groupOfUsers(Operation *op) const {
  std::optional<size_t> found;
  for (Operation *user : op->getUsers()) {
    auto index = groups.indexOf(user);
    if (!index || (found && *found != *index))
      return std::nullopt;
    found = index;
  }
  return found;
}

void Joining::assign(Operation *op) {
  auto index = groupOfUsers(op);
  if (!index || !mayJoin(op, groups[*index])) {
    if (isa<graph::ReshapeOp>(op))
      return; // a view
    Group group;
    group.mechanism = &mechanism::kPointwise;
    group.domain = graph::dimsOf(op->getResult(0));
    index = groups.add(std::move(group));
  }
  Group &group = groups[*index];
  if (const Mechanism *brought = mechanismOf(op); brought != &mechanism::kPointwise)
    group.mechanism = brought;
  bool isInPlace = graph::isElementwise(op) || graph::isFree(op);
  group.onlyElementwise &= isInPlace;
  group.onlySlices &= isInPlace || isa<graph::SliceOp>(op);
  groups.put(op, *index);
}

void joinOps(Groups &groups) {
  Joining joining(groups);
  for (Operation &op : llvm::reverse(groups.block))
    if (!isHost(&op) && !groups.has(&op))
      joining.assign(&op);
}

} // namespace heddle::partition
