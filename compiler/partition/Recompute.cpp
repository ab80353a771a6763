// Recompute: what is cheap and read by a few groups becomes part of each (Apollo, Zhao et al.,
// MLSys 2022), where the policy says that this moves no more bytes.

#include "compiler/partition/Joining.h"
#include "compiler/partition/Steps.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace heddle::partition {

namespace {
class Recompute {
public:
  explicit Recompute(Groups &groups) : groups(groups), joining(groups) {}

  void giveToReaders(Group &group) {
    if (!mayBeCopied(group) || !(groups.wishes.wantsCopies(group) || isWorthwhile(group)))
      return;
    auto readers = findReaders(group.root());
    if (!readers || !llvm::all_of(*readers, [&](size_t reader) { return takes(reader, group); }))
      return;
    for (size_t reader : *readers)
      addCopies(reader, group);
    groups.erase(group);
  }

private:
  static bool mayBeCopied(const Group &group) {
    return group.is(mechanism::kPointwise) && !group.isClaimed && !group.members.empty() &&
           llvm::all_of(group.members, [](Operation *op) { return op->getNumResults() == 1; });
  }

  bool isWorthwhile(const Group &group) const {
    auto isGrouped = [&](Operation *op) { return groups.has(op); };
    auto joins = [](Operation *) { return false; };
    return groups.options.fuses &&
           llvm::none_of(group.members,
                         [&](Operation *member) {
                           return member->hasAttr(graph::kIsStored) ||
                                  groups.wishes.refuses(member, group.mechanism->name);
                         }) &&
           groups.policy.recomputes(group, {isGrouped, joins});
  }

  /// The groups of all who read the op's result; none if somebody else does, or too many.
  std::optional<std::set<size_t>> findReaders(Operation *root) const {
    std::set<size_t> readers;
    for (Operation *user : root->getUsers()) {
      auto index = groups.indexOf(user);
      if (!index)
        return std::nullopt;
      readers.insert(*index);
    }
    bool areFew = readers.size() > 1 && readers.size() <= groups.policy.mostReaders();
    return areFew ? std::optional(readers) : std::nullopt;
  }

  bool takes(size_t reader, const Group &group) const {
    auto joins = [&](Operation *member) { return joining.mayJoin(member, groups[reader]); };
    return llvm::all_of(group.members, joins) &&
           llvm::all_of(group.root()->getUsers(), [&](Operation *user) {
             return groups.indexOf(user) != reader || graph::isElementwise(user) ||
                    !graph::reducedAxes(user).empty();
           });
  }

  void addCopies(size_t reader, const Group &group) {
    IRMapping copies;
    OpBuilder builder(group.root());
    SmallVector<Operation *> made;
    for (Operation *member : llvm::reverse(group.members))
      made.push_back(builder.clone(*member, copies));
    Value result = group.root()->getResult(0);
    result.replaceUsesWithIf(copies.lookup(result), [&](OpOperand &use) {
      return groups.indexOf(use.getOwner()) == reader;
    });
    for (Operation *copy : llvm::reverse(made))
      groups.put(copy, reader);
  }

  Groups &groups;
  Joining joining;
};
} // namespace

void recompute(Groups &groups) {
  Recompute step(groups);
  for (size_t i = 0, count = groups.size(); i < count; ++i)
    step.giveToReaders(groups[i]);
}

} // namespace heddle::partition
