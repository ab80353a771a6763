// Siblings: groups that walk the same elements, or the same rows, become one with several results,
// where one reads what the other reads or makes (Apollo's rules elemwise-width and reduce-output,
// Zhao et al., MLSys 2022). An optimiser's new weight and moments are one kernel so, and what a
// normalisation and its derivative need of a row.
//
// Such a group may have readers between its parts, which move after it, and could close a cycle:
// Sequence refuses that.

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/partition/Steps.h"
#include "compiler/partition/order/Sequence.h"

using namespace mlir;

namespace heddle::partition {

using graph::DimVector;

/// Readers of a tensor that are looked at.
static constexpr size_t kMostReaders = 32;

/// Values that others than the members read, besides the results of `root`.
static SmallVector<Value> readElsewhere(Block &block, ArrayRef<Operation *> members,
                                        Operation *root) {
  SmallVector<Value> found;
  for (Operation *member : llvm::reverse(members))
    for (Value made : member->getResults())
      if (member != root && llvm::any_of(made.getUsers(), [&](Operation *user) {
            return !llvm::is_contained(members, block.findAncestorOpInBlock(*user));
          }))
        found.push_back(made);
  return found;
}

/// A value that both read, or that one makes and the other reads, and that has as many elements as
/// `dims`: they walk it together, and one pass over memory less is needed.
static bool haveCommonData(const Group &earlier, const Group &later, ArrayRef<graph::Dim> dims) {
  SetVector<Value> inputs = inputsOf(earlier.members);
  return llvm::any_of(inputsOf(later.members), [&](Value value) {
    return ArrayRef<graph::Dim>(graph::dimsOf(value)) == dims &&
           (inputs.contains(value) || llvm::is_contained(earlier.members, value.getDefiningOp()));
  });
}

/// The reductions over leading dimensions of groups whose members these are, last to first.
static bool areColumns(ArrayRef<Operation *> members, ValueRange results) {
  std::string why;
  SmallVector<Operation *> ops(llvm::reverse(members));
  return mechanism::readColumns(ops, results, why).has_value();
}

static bool isColumns(const Group &group) {
  SmallVector<Value> results(group.root()->getResults());
  llvm::append_range(results, group.alsoRead);
  return group.is(mechanism::kPointwise) && !group.onlyElementwise &&
         areColumns(group.members, results);
}

/// The mechanism of both together, if each is elementwise or reduces rows, or both reduce columns.
static const Mechanism *mechanismOf(const Group &earlier, const Group &later) {
  if (!earlier.isClaimed && !later.isClaimed && isColumns(earlier) && isColumns(later)) {
    SmallVector<Operation *> all(later.members);
    all.append(earlier.members);
    DimVector walked = walkedBy(later);
    bool fits = walked == walkedBy(earlier) && haveCommonData(earlier, later, walked) &&
                areColumns(all, {});
    return fits ? &mechanism::kPointwise : nullptr;
  }
  auto isOpen = [](const Group &group) {
    return !group.isClaimed && (group.is(mechanism::kRows) ||
                                (group.is(mechanism::kPointwise) && group.onlyElementwise));
  };
  if (!isOpen(earlier) || !isOpen(later))
    return nullptr;
  bool hasRows = earlier.is(mechanism::kRows) || later.is(mechanism::kRows);
  const Mechanism *made = hasRows ? &mechanism::kRows : &mechanism::kPointwise;
  DimVector first = walkedBy(earlier), second = walkedBy(later);
  bool walkTheSame = first == second && haveCommonData(earlier, later, first);
  if (walkTheSame || !hasRows)
    return walkTheSame ? made : nullptr;
  // A number for each row, and the reductions that it is made of or for.
  const Group &other = earlier.is(mechanism::kRows) ? later : earlier;
  DimVector numbers = graph::dimsOf(other.root()->getResult(0));
  bool areNumbers = other.is(mechanism::kPointwise) && haveCommonData(earlier, later, numbers);
  return areNumbers ? made : nullptr;
}

namespace {
class Joiner {
public:
  explicit Joiner(Groups &groups)
      : groups(groups), sequence(
                            groups.block,
                            [&groups](Operation *head) {
                              Group *group = groups.of(head);
                              return group ? group->members : SmallVector<Operation *>{head};
                            },
                            [&groups](Operation *op) { return groups.headOf(op); }) {}

  void run() {
    for (size_t seat = 0; seat < sequence.size(); ++seat) {
      Operation *head = sequence.at(seat);
      if (head && groups.has(head))
        while (joinOne(head)) {
        }
    }
  }

private:
  /// Whether the two, of which one does not need the other's whole result, are better one.
  bool areSiblings(const Group &earlier, const Group &later, const Mechanism &made) const {
    Operation *root = later.root();
    const Wishes &wishes = groups.wishes;
    if (graph::rowsOf(earlier.root()) != graph::rowsOf(root) ||
        earlier.members.size() + later.members.size() > kMostOps || isAlone(root) ||
        isAlone(earlier.root()) || !wishes.allowsJoin(earlier, later) ||
        wishes.refuses(root, kSeveral) || wishes.refuses(root, made.name))
      return false;
    SmallVector<Operation *> all(later.members);
    all.append(earlier.members);
    size_t streams = inputsOf(all).size() + readElsewhere(groups.block, all, root).size() + 1;
    if (!groups.policy.joins({earlier, later, made, streams}) &&
        !wishes.asksFor(earlier.members, root))
      return false;
    // Without a card a group is computed element by element, or by columns.
    SmallVector<Operation *> inOrder(llvm::reverse(all));
    return groups.servesInOrder(made, inOrder) ||
           (&made == &mechanism::kPointwise && isColumns(later));
  }

  /// The heads of groups before this one that make what it reads, or read it as well; the nearest
  /// first.
  OpSet siblingsBefore(Operation *later) const {
    SmallVector<Operation *> found;
    auto note = [&](Operation *op) {
      Operation *head = groups.headOf(op);
      if (head && groups.has(head) && head != later && sequence.isBefore(head, later))
        found.push_back(head);
    };
    for (Value input : inputsOf(groups.of(later)->members)) {
      if (Operation *source = input.getDefiningOp())
        note(source);
      size_t count = 0;
      for (Operation *user : input.getUsers())
        if (count++ < kMostReaders)
          note(user);
    }
    llvm::sort(found, [&](Operation *a, Operation *b) { return sequence.isBefore(b, a); });
    return OpSet(found.begin(), found.end());
  }

  void join(Group &earlier, Group &later, const Mechanism &mechanism) {
    size_t index = *groups.indexOf(later.root());
    for (Operation *member : earlier.members)
      groups.move(member, index);
    later.members.append(earlier.members);
    // Keep the model's order, whichever groups were joined first.
    groups.sort(MutableArrayRef<Operation *>(later.members).drop_front());
    later.mechanism = &mechanism;
    later.alsoRead = readElsewhere(groups.block, later.members, later.root());
    later.onlyElementwise &= earlier.onlyElementwise;
    later.onlySlices &= earlier.onlySlices;
    earlier.members.clear();
  }

  /// Joins one group into the later one; false if none fits.
  bool joinOne(Operation *later) {
    Group &group = *groups.of(later);
    for (Operation *head : siblingsBefore(later)) {
      Group &earlier = *groups.of(head);
      const Mechanism *made = mechanismOf(earlier, group);
      if (!made || !areSiblings(earlier, group, *made) || !sequence.mayJoin(head, later))
        continue;
      sequence.join({head, later});
      join(earlier, group, *made);
      return true;
    }
    return false;
  }

  Groups &groups;
  Sequence sequence;
};
} // namespace

void joinSiblings(Groups &groups) { Joiner(groups).run(); }

} // namespace heddle::partition
