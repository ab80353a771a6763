// Recompute: see Recompute.h. Groups are added last to first, so that each finds its readers where
// they stay.

#include "compiler/plan/Recompute.h"

#include "compiler/mechanism/Product.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heddle::plan {

static bool isPerElement(Operation *op) { return graph::isElementwise(op) || graph::isFree(op); }

std::optional<GroupPart> partOf(graph::GroupOp group, ArrayRef<int64_t> results,
                                ArrayRef<int64_t> from) {
  Block &body = group.getBody().front();
  Operation *yield = body.getTerminator();
  SmallPtrSet<Value, 4> given;
  for (int64_t number : from)
    given.insert(yield->getOperand(number));
  llvm::SetVector<Value> open;
  for (int64_t number : results)
    open.insert(yield->getOperand(number));
  llvm::SmallPtrSet<Operation *, 16> taken;
  for (size_t i = 0; i < open.size(); ++i) {
    Operation *op = open[i].getDefiningOp();
    if (!op || op->getBlock() != &body || given.contains(open[i]) || !taken.insert(op).second)
      continue;
    if (op->getNumRegions() > 0 || graph::bindsSizes(op))
      return std::nullopt;
    open.insert(op->operand_begin(), op->operand_end());
  }
  GroupPart part;
  bool hasSome = false, hasAll = true;
  for (Operation &op : body.without_terminator()) {
    bool isTaken = taken.contains(&op);
    if (isTaken)
      part.ops.push_back(&op);
    if (!isPerElement(&op))
      (isTaken ? hasSome : hasAll) = isTaken;
  }
  bool isWhole = part.ops.size() == body.getOperations().size() - 1;
  const mechanism::Mechanism *whole = mechanism::of(group);
  bool takesParts = whole && whole->takesParts && !mechanism::isReadInParts(mechanism::opsOf(body));
  if (part.ops.empty() || (!isWhole && (!takesParts || (hasSome && !hasAll))))
    return std::nullopt;
  part.mechanism = hasSome || isWhole ? whole : &mechanism::kPointwise;
  return part;
}

namespace {
class Recomputer {
public:
  explicit Recomputer(func::FuncOp function) : block(function.getBody().front()) {
    for (graph::GroupOp group : block.getOps<graph::GroupOp>())
      groups[group.getName()] = group;
  }

  /// What is wrong; "" for nothing.
  std::string add(const Recomputation &wish) {
    graph::GroupOp group = groups.lookup(wish.group);
    if (!group)
      return "the model has no group '" + wish.group + "' in its main graph to compute again";
    if (groups.count(wish.name))
      return "there is a group of this name";
    for (const auto *numbers : {&wish.results, &wish.from})
      for (int64_t number : *numbers)
        if (number < 0 || number >= (int64_t)group.getNumResults())
          return "group '" + wish.group + "' has " + std::to_string(group.getNumResults()) +
                 " results, which are counted from 0; there is none of number " +
                 std::to_string(number);
    auto part = partOf(group, wish.results, wish.from);
    if (!part)
      return "no kernel can compute these results of group '" + wish.group +
             "' alone; name all of its results, and none in 'from'";
    SmallVector<graph::GroupOp> readers;
    for (const std::string &name : wish.readers) {
      graph::GroupOp reader = groups.lookup(name);
      if (!reader)
        return "the model has no group '" + name + "' in its main graph to read it";
      if (!reads(reader, group, wish))
        return "group '" + name + "' reads none of these results of group '" + wish.group +
               "', or has them of another group that computes them again";
      readers.push_back(reader);
    }
    if (readers.empty())
      return "no group reads it";
    graph::GroupOp copy = clone(group, *part, wish, beforeCopies(firstOf(readers)));
    groups[wish.name] = copy;
    copies.insert(copy);
    for (graph::GroupOp reader : readers)
      redirect(reader, group, copy, wish);
    return "";
  }

private:
  /// Which of the wished results the value shows, as an index of `wish.results`.
  static std::optional<size_t> numberOf(Value value, graph::GroupOp group,
                                        const Recomputation &wish) {
    auto result = dyn_cast<OpResult>(graph::unshaped(value));
    if (!result || result.getOwner() != group.getOperation())
      return std::nullopt;
    auto found = llvm::find(wish.results, (int64_t)result.getResultNumber());
    return found == wish.results.end() ? std::nullopt
                                       : std::optional<size_t>(found - wish.results.begin());
  }

  static bool reads(graph::GroupOp reader, graph::GroupOp group, const Recomputation &wish) {
    return reader
        .walk([&](Operation *op) {
          return llvm::any_of(op->getOperands(),
                              [&](Value operand) { return numberOf(operand, group, wish); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Where the first of the groups, or of those that run at once with it, stands.
  Operation *firstOf(ArrayRef<graph::GroupOp> readers) const {
    graph::GroupOp first = readers.front();
    for (graph::GroupOp reader : readers)
      if (reader->isBeforeInBlock(first))
        first = reader;
    if (auto region = first.getRegion())
      for (Operation *op = first->getPrevNode(); op; op = op->getPrevNode())
        if (auto other = dyn_cast<graph::GroupOp>(op)) {
          if (other.getRegion() != region)
            break;
          first = other;
        }
    return first;
  }

  /// The first of the copies right before the place, and of what shows their results: they are of
  /// later lines, and run later.
  Operation *beforeCopies(Operation *place) const {
    while (place->getPrevNode() && copies.contains(place->getPrevNode()))
      place = place->getPrevNode();
    return place;
  }

  graph::GroupOp clone(graph::GroupOp group, const GroupPart &part, const Recomputation &wish,
                       Operation *place) {
    OpBuilder builder(place);
    Operation *yield = group.getBody().front().getTerminator();
    SmallVector<Type> types;
    for (int64_t number : wish.results)
      types.push_back(group.getResult(number).getType());
    auto copy = builder.create<graph::GroupOp>(group.getLoc(), types, wish.name,
                                               part.mechanism ? part.mechanism->name : "");
    Block *body = builder.createBlock(&copy.getBody());
    IRMapping mapping;
    for (int64_t number : wish.from)
      mapping.map(yield->getOperand(number), group.getResult(number));
    for (Operation *op : part.ops)
      builder.clone(*op, mapping);
    SmallVector<Value> yielded;
    for (int64_t number : wish.results)
      yielded.push_back(mapping.lookupOrDefault(yield->getOperand(number)));
    builder.setInsertionPointToEnd(body);
    builder.create<graph::YieldOp>(yield->getLoc(), yielded);
    return copy;
  }

  void redirect(graph::GroupOp reader, graph::GroupOp group, graph::GroupOp copy,
                const Recomputation &wish) {
    DenseMap<Value, Value> shown;
    OpBuilder builder(copy->getContext());
    builder.setInsertionPointAfter(copy);
    std::function<Value(Value)> shownAs = [&](Value value) -> Value {
      auto [known, isNew] = shown.try_emplace(value);
      if (!isNew)
        return known->second;
      Value made;
      if (value.getDefiningOp() == group.getOperation()) {
        made = copy.getResult(*numberOf(value, group, wish));
      } else {
        Operation *view = value.getDefiningOp();
        IRMapping mapping;
        mapping.map(view->getOperand(0), shownAs(view->getOperand(0)));
        made = builder.clone(*view, mapping)->getResult(0);
        copies.insert(made.getDefiningOp());
      }
      shown[value] = made;
      return made;
    };
    reader.walk([&](Operation *op) {
      for (OpOperand &use : op->getOpOperands())
        if (numberOf(use.get(), group, wish))
          use.set(shownAs(use.get()));
    });
  }

  Block &block;
  llvm::StringMap<graph::GroupOp> groups;
  DenseSet<Operation *> copies; // and views of them
};
} // namespace

std::optional<std::pair<std::string, std::string>> recompute(func::FuncOp function,
                                                             ArrayRef<Recomputation> all) {
  Recomputer recomputer(function);
  for (const Recomputation &each : llvm::reverse(all))
    if (std::string problem = recomputer.add(each); !problem.empty())
      return std::pair(each.name, problem);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isa<graph::ReshapeOp>(op) && op.use_empty())
      op.erase(); // which would keep what it shows
  return std::nullopt;
}

} // namespace heddle::plan
