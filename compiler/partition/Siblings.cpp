// Siblings: groups that walk the same elements, or the same rows, become one with several results,
// where one reads what the other reads or makes (Apollo's rules elemwise-width and reduce-output,
// Zhao et al., MLSys 2022). An optimiser's new weight and moments are one kernel so, and what a
// normalisation and its derivative need of a row.
//
// Such a group may have readers between its parts, which move after it, and could close a cycle:
// Sequence refuses that.

#include "compiler/estimate/Thresholds.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/graph/ragged/Ragged.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/partition/Partitioner.h"

using namespace mlir;

namespace heddle::partition {

using graph::DimVector;

/// Tensors that a kernel reads and writes side by side: more streams than the hardware follows
/// cost more than reading one of them twice.
static constexpr size_t kMostStreams = 16;
/// Readers of a tensor that are looked at.
static constexpr size_t kMostReaders = 32;
/// Elements of a row, at least, that fill vectors along it.
static constexpr int64_t kShortestRow = 16;
/// Rows, at least, that keep the workers busy.
static constexpr int64_t kLeastRows = 16;

Operation *Partitioner::headOf(Operation *op) {
  op = block.findAncestorOpInBlock(*op);
  if (!op)
    return nullptr;
  auto known = groupOf.find(op);
  return known == groupOf.end() ? op : groups[known->second].root();
}

/// What the members read and do not make themselves.
static SetVector<Value> inputsOf(ArrayRef<Operation *> members) {
  SetVector<Value> inputs;
  for (Operation *member : members)
    for (Value operand : member->getOperands())
      if (Operation *source = operand.getDefiningOp();
          !isa_and_nonnull<graph::ConstantOp>(source) && !llvm::is_contained(members, source))
        inputs.insert(operand);
  return inputs;
}

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

/// The dimensions of the elements that a group walks: of what it reduces, if it does.
static DimVector walkedBy(const Group &group) {
  for (Operation *member : group.members)
    if (!graph::reducedAxes(member).empty())
      return graph::dimsOf(member->getOperand(0));
  return graph::dimsOf(group.root()->getResult(0));
}

/// What the two are together, where each is elementwise or reduces rows, or both reduce columns.
const Mechanism *Partitioner::mechanismOfSiblings(const Group &earlier, const Group &later) const {
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

/// Whether rows are many enough that a task takes whole ones, or the whole is small, or the kernel
/// shares out each row.
static bool fillsWorkers(Operation *at, const Group &group) {
  DimVector dims = walkedBy(group);
  int64_t all = graph::typicalSize(at, graph::elementCount(dims));
  for (Operation *member : group.members)
    if (ArrayRef<int64_t> axes = graph::reducedAxes(member); !axes.empty()) {
      auto kept = ArrayRef<graph::Dim>(dims).drop_back(axes.size());
      auto length = graph::elementCount(ArrayRef<graph::Dim>(dims).take_back(axes.size()));
      bool isSharedOut =
          graph::elementCount(kept).constant() &&
          length.constant().value_or(0) >= estimate::thresholdAt(at, estimate::kLongRow);
      return isSharedOut || all <= estimate::thresholdAt(at, estimate::kParallelWork) ||
             graph::typicalSize(at, graph::elementCount(kept)) >= kLeastRows;
    }
  return true;
}

/// Whether the mechanism has a form for the rows of both: those of a few elements lie side by side
/// in lanes, which takes whole bytes.
static bool hasFormForRows(Operation *at, const Group &group, const Group &other) {
  int64_t length = INT64_MAX;
  bool hasBits = false;
  for (const Group *each : {&group, &other})
    for (Operation *member : each->members) {
      for (Value operand : member->getOperands())
        hasBits |= graph::elementOf(operand).getIntOrFloatBitWidth() < 8 &&
                   !llvm::is_contained(each->members, operand.getDefiningOp());
      if (ArrayRef<int64_t> axes = graph::reducedAxes(member); !axes.empty()) {
        DimVector dims = graph::dimsOf(member->getOperand(0));
        auto row = ArrayRef<graph::Dim>(dims).take_back(axes.size());
        length = std::min(length, graph::typicalSize(at, graph::elementCount(row)));
      }
    }
  return !hasBits || length >= kShortestRow;
}

/// Whether a plan, where it has a line for one of the two, has all ops of the earlier group in the
/// later one, or those of both in one line: that of a group which takes both, by steps.
bool Partitioner::areJoinsWanted(const Group &earlier, const Group &later) const {
  if (options.wanted.empty())
    return true;
  std::set<std::string> names;
  for (const Group *group : {&earlier, &later})
    for (Operation *op : group->members)
      if (std::string name = graph::sourceName(op->getLoc()); !name.empty())
        names.insert(name);
  if (llvm::any_of(options.wanted, [&](auto &line) {
        return std::includes(line.second.begin(), line.second.end(), names.begin(), names.end());
      }))
    return true;
  auto hasLine = [&](const Group &group) {
    return options.wanted.count(graph::sourceName(group.root()->getLoc())) > 0;
  };
  if (!hasLine(later))
    return !hasLine(earlier);
  return llvm::all_of(earlier.members, [&](Operation *op) { return isWanted(op, later.root()); });
}

/// Whether a plan has all ops of the earlier group in the later one, whatever that costs.
bool Partitioner::isJoinAskedFor(const Group &earlier, const Group &later) const {
  return llvm::all_of(earlier.members, [&](Operation *op) { return isAskedFor(op, later.root()); });
}

/// Whether the two, of which one does not need the other's whole result, are better one.
bool Partitioner::areSiblings(const Group &earlier, const Group &later) {
  Operation *root = later.root();
  const Mechanism *made = mechanismOfSiblings(earlier, later);
  if (!made || llvm::all_of(later.members, isWidening) ||
      graph::rowsOf(earlier.root()) != graph::rowsOf(root) ||
      earlier.members.size() + later.members.size() > kMostOps || isAlone(root) ||
      isAlone(earlier.root()) || !areJoinsWanted(earlier, later) || isRefused(root, kSeveral) ||
      isRefused(root, made->name))
    return false;
  SmallVector<Operation *> all(later.members);
  all.append(earlier.members);
  size_t streams = inputsOf(all).size() + readElsewhere(block, all, root).size() + 1;
  bool areFit =
      made != &mechanism::kRows || (fillsWorkers(root, later) && fillsWorkers(root, earlier) &&
                                    hasFormForRows(root, earlier, later));
  bool pays = streams <= kMostStreams && areFit;
  // Without a card a group is computed element by element, or by columns.
  SmallVector<Operation *> inOrder(llvm::reverse(all));
  bool isServed =
      servesInOrder(*made, inOrder) || (made == &mechanism::kPointwise && isColumns(later));
  return (pays || isJoinAskedFor(earlier, later)) && isServed;
}

/// The heads of groups before this one that make what it reads, or read it as well; the nearest
/// first.
SetVector<Operation *> Partitioner::siblingsBefore(Operation *later, Sequence &sequence) {
  SmallVector<Operation *> found;
  auto note = [&](Operation *op) {
    Operation *head = headOf(op);
    if (head && groupOf.contains(head) && head != later && sequence.isBefore(head, later))
      found.push_back(head);
  };
  for (Value input : inputsOf(groups[groupOf.at(later)].members)) {
    if (Operation *source = input.getDefiningOp())
      note(source);
    size_t count = 0;
    for (Operation *user : input.getUsers())
      if (count++ < kMostReaders)
        note(user);
  }
  llvm::sort(found, [&](Operation *a, Operation *b) { return sequence.isBefore(b, a); });
  return SetVector<Operation *>(found.begin(), found.end());
}

void Partitioner::joinSibling(Group &earlier, Group &later, const Mechanism &mechanism) {
  size_t index = groupOf.at(later.root());
  for (Operation *member : earlier.members)
    groupOf[member] = index;
  later.members.append(earlier.members);
  // In the model's order, whichever groups were joined first.
  std::sort(later.members.begin() + 1, later.members.end(),
            [this](Operation *a, Operation *b) { return places.at(a) > places.at(b); });
  later.mechanism = &mechanism;
  later.alsoRead = readElsewhere(block, later.members, later.root());
  later.onlyElementwise &= earlier.onlyElementwise;
  later.onlySlices &= earlier.onlySlices;
  earlier.members.clear();
}

/// Joins one group into the later one; false where none fits.
bool Partitioner::joinOneSibling(Operation *later, Sequence &sequence) {
  Group &group = groups[groupOf.at(later)];
  for (Operation *head : siblingsBefore(later, sequence)) {
    Group &earlier = groups[groupOf.at(head)];
    if (!areSiblings(earlier, group) || !sequence.mayJoin(head, later))
      continue;
    const Mechanism *made = mechanismOfSiblings(earlier, group);
    sequence.join(head, later);
    joinSibling(earlier, group, *made);
    return true;
  }
  return false;
}

void Partitioner::joinSiblings() {
  Sequence sequence(
      block,
      [this](Operation *head) {
        auto known = groupOf.find(head);
        return known == groupOf.end() ? SmallVector<Operation *>{head}
                                      : groups[known->second].members;
      },
      [this](Operation *op) { return headOf(op); });
  for (size_t seat = 0; seat < sequence.size(); ++seat) {
    Operation *head = sequence.at(seat);
    if (head && groupOf.contains(head))
      while (joinOneSibling(head, sequence)) {
      }
  }
}

} // namespace heddle::partition
