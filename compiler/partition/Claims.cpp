// Claims: subgraphs that cards take as a whole, grown around their skeleton ops (Growth.cpp).

#include "compiler/partition/AttentionGradients.h"
#include "compiler/partition/Steps.h"

using namespace mlir;

namespace heddle::partition {

/// Values that others than the members read, besides the results of `root`.
static SmallVector<Value> readElsewhere(Block &block, ArrayRef<Operation *> members,
                                        Operation *root) {
  SmallVector<Value> found;
  for (Operation *member : members)
    for (Value made : member->getResults())
      if (member != root && llvm::any_of(made.getUsers(), [&](Operation *user) {
            return !llvm::is_contained(members, block.findAncestorOpInBlock(*user));
          }))
        found.push_back(made);
  return found;
}

void addClaims(Groups &groups, std::vector<Claim> claims) {
  moveReadersBehind(claims, groups);
  for (Claim &claim : claims) {
    Group group;
    group.mechanism = claim.mechanism;
    group.isClaimed = true;
    group.onlyElementwise = false;
    group.alsoRead = readElsewhere(groups.block, claim.ops, claim.ops.back());
    group.members.assign(claim.ops.rbegin(), claim.ops.rend());
    groups.add(std::move(group));
  }
}

void takeClaims(Groups &groups) {
  const warehouse::Warehouse *cards = groups.options.cards;
  if (!cards)
    return;
  auto isWanted = [&](const Claim &claim) {
    Operation *root = claim.ops.back();
    auto has = [&](Operation *op) { return groups.has(op); };
    return llvm::none_of(claim.ops, has) &&
           !groups.wishes.refuses(root, stepOf(*claim.mechanism, claim.ops)) &&
           groups.wishes.allows(claim.ops, root) &&
           (groups.policy.claims(claim.ops, *claim.mechanism) ||
            groups.wishes.asksFor(claim.ops, root));
  };
  std::vector<Claim> begun = beginAttentionGradients(groups.block, *cards, isWanted);
  if (!begun.empty())
    copyFreeOps(groups); // copies read those of their originals
  std::vector<Claim> claims = growClaims(groups, *cards, std::move(begun));
  llvm::erase_if(claims, [&](const Claim &claim) { return !isWanted(claim); });
  addClaims(groups, std::move(claims));
}

} // namespace heddle::partition
