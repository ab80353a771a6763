// Wishes: a plan knows groups by their names, and ops by the names of the model's nodes.

#include "compiler/partition/given/Wishes.h"

using namespace mlir;

namespace heddle::partition {

static std::string nameOf(Operation *op) { return graph::sourceName(op->getLoc()); }

bool Wishes::allows(Operation *op, Operation *root) const {
  auto group = options.wanted.find(nameOf(root));
  std::string name = nameOf(op);
  if (options.apart.count(name) && name != nameOf(root))
    return false;
  return group == options.wanted.end() || name.empty() || group->second.count(name) > 0;
}

bool Wishes::allows(ArrayRef<Operation *> ops, Operation *root) const {
  return llvm::all_of(ops, [&](Operation *op) { return allows(op, root); });
}

bool Wishes::asksFor(Operation *op, Operation *root) const {
  std::string name = nameOf(op);
  if (options.joined.count(name))
    return true;
  auto group = options.wanted.find(nameOf(root));
  return group != options.wanted.end() && !options.ambiguous.count(group->first) &&
         group->second.count(name) &&
         llvm::count_if(options.wanted, [&](auto &each) { return each.second.count(name) > 0; }) ==
             1;
}

bool Wishes::asksFor(ArrayRef<Operation *> ops, Operation *root) const {
  return llvm::all_of(ops, [&](Operation *op) { return asksFor(op, root); });
}

bool Wishes::refuses(Operation *root, StringRef step) const {
  return options.refused.count({nameOf(root), step.str()}) > 0;
}

bool Wishes::allowsJoin(const Group &earlier, const Group &later) const {
  if (options.wanted.empty())
    return true;
  std::set<std::string> names;
  for (const Group *group : {&earlier, &later})
    for (Operation *op : group->members)
      if (std::string name = nameOf(op); !name.empty())
        names.insert(name);
  if (llvm::any_of(options.wanted, [&](auto &line) {
        return std::includes(line.second.begin(), line.second.end(), names.begin(), names.end());
      }))
    return true;
  auto hasLine = [&](const Group &group) { return options.wanted.count(nameOf(group.root())) > 0; };
  return hasLine(later) ? allows(earlier.members, later.root()) : !hasLine(earlier);
}

bool Wishes::wantsCopies(const Group &group) const {
  std::string root = nameOf(group.root());
  if (options.joined.count(root))
    return true;
  if (options.wanted.empty() || options.wanted.count(root))
    return false;
  return llvm::all_of(group.members, [&](Operation *member) {
    std::string name = nameOf(member);
    auto isOfNode = [&](Operation &op) { return nameOf(&op) == name; };
    return llvm::count_if(options.wanted, [&](auto &each) { return each.second.count(name) > 0; }) >
               1 &&
           llvm::count_if(block, isOfNode) ==
               llvm::count_if(group.members, [&](Operation *op) { return isOfNode(*op); });
  });
}

} // namespace heddle::partition
