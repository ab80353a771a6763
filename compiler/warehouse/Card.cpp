// Card: whether a card is for a group, and carrying its sequence out on one.

#include "compiler/warehouse/Card.h"

#include "compiler/mechanism/Product.h"
#include "compiler/mechanism/foreign/Holes.h"
#include "compiler/support/Error.h"

#include "mlir/Dialect/Transform/Transforms/TransformInterpreterUtils.h"

using namespace mlir;

namespace heddle::warehouse {

using mechanism::CardType;

int64_t Knob::atMost(int64_t wanted) const {
  int64_t best = *llvm::min_element(domain);
  for (int64_t value : domain)
    if (value <= wanted)
      best = std::max(best, value);
  return best;
}

const Knob *Card::knob(StringRef wanted) const {
  auto found = llvm::find_if(knobs, [&](const Knob &knob) { return knob.name == wanted; });
  return found == knobs.end() ? nullptr : &*found;
}

std::vector<Knob> Card::knobsFor(int64_t workers) const {
  std::vector<Knob> some = knobs;
  for (Knob &knob : some)
    if (workers == 1 && llvm::is_contained(mechanism->sharing, knob.name))
      knob.domain = {knob.initial};
  return some;
}

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// A refusal by loops; names the loop at which it failed if there is one key only.
static std::string loopsRefusal(const graph::LoopNest &nest, ArrayRef<Key> keys, StringRef why) {
  auto texts = llvm::map_range(keys, [](const Key &key) { return "'" + key.str() + "'"; });
  std::string where = keys.size() == 1 && !why.empty() ? (": " + why).str() : "";
  return "loops '" + nest.str() + "' are not " + llvm::join(texts, " or ") + where;
}

/// The extent against the card's guards; an extent known only at run time meets none.
static std::string guardRefusal(const Card &card, const Extents &extents) {
  for (auto &[letter, extent] : extents) {
    auto least = card.least.find(letter), most = card.most.find(letter);
    auto size = extent.constant();
    std::string is = letter + " is " + extent.str();
    if (least != card.least.end() && (!size || *size < least->second))
      return is + ", at least " + std::to_string(least->second) + " is needed";
    if (most != card.most.end() && (!size || *size > most->second))
      return is + ", at most " + std::to_string(most->second) + " is allowed";
  }
  return "";
}

/// The element type of an operand or result that the card is not made for, as a refusal.
static std::string dtypeRefusal(const Card &card, Operation *op) {
  if (card.dtypes.empty())
    return "";
  auto types = llvm::concat<Type>(llvm::to_vector(op->getOperandTypes()),
                                  llvm::to_vector(op->getResultTypes()));
  for (Type type : types)
    if (std::string name = textOf(cast<RankedTensorType>(type).getElementType());
        !llvm::is_contained(card.dtypes, name))
      return "element type " + name + " is none of " + llvm::join(card.dtypes, ", ");
  return "";
}

SmallVector<Operation *> Card::exampleOps() const {
  SmallVector<Operation *> ops;
  func::FuncOp function = example;
  for (Operation &op : function.getBody().front().without_terminator())
    if (!isa<graph::ConstantOp>(op))
      ops.push_back(&op);
  return ops;
}

/// Whether the card is about this op: the others are what growth takes in around it.
bool Card::names(Operation *op) const {
  return decides(op) || llvm::any_of(llvm::concat<const Key>(keys, nests), [&](const Key &key) {
           return key.hasOp(op->getName().stripDialect());
         });
}

/// Not a number or a size that is beside the data, nor a copy of one.
static bool computes(Operation *op) {
  return !isa<graph::ConstantOp, graph::BroadcastOp, graph::ReshapeOp>(op);
}

Operation *Card::prologueOf(ArrayRef<Operation *> ops) const {
  llvm::SmallPtrSet<Operation *, 8> after; // a named op, or itself one
  for (Operation *op : ops) {
    auto isBehind = [&](Value operand) { return after.contains(operand.getDefiningOp()); };
    if (names(op) || llvm::any_of(op->getOperands(), isBehind))
      after.insert(op);
    else if (computes(op))
      return op;
  }
  return nullptr;
}

Operation *Card::epilogueOf(ArrayRef<Operation *> ops) const {
  llvm::SmallPtrSet<Operation *, 8> before; // a named op, or itself one
  for (Operation *op : llvm::reverse(ops)) {
    auto isBefore = [&](Operation *user) { return before.contains(user); };
    if (names(op) || llvm::any_of(op->getUsers(), isBefore))
      before.insert(op);
    else if (computes(op))
      return op;
  }
  return nullptr;
}

/// Why the ops around those that the card names may not be there.
std::string Card::aroundRefusal(ArrayRef<Operation *> ops) const {
  auto refuse = [](Operation *op, StringRef place, StringRef field) {
    std::string node = graph::sourceName(op->getLoc());
    return ("op '" + op->getName().stripDialect() + "'" +
            (node.empty() ? "" : " of '" + node + "'") + " is " + place +
            " what the card names, which its '" + field + " = false' forbids")
        .str();
  };
  if (Operation *op = hasPrologue ? nullptr : prologueOf(ops))
    return refuse(op, "before", "prologue");
  if (Operation *op = hasEpilogue ? nullptr : epilogueOf(ops))
    return refuse(op, "after", "epilogue");
  return "";
}

graph::LoopNest Card::nestOf(ArrayRef<Operation *> ops) const {
  SmallVector<Operation *> counted(ops);
  if (readsThroughMoves)
    llvm::erase_if(counted, graph::isMovement);
  return graph::nestOf(counted);
}

Fit Card::fit(ArrayRef<Operation *> ops) const {
  if (nests.empty())
    return Fit::No;
  graph::LoopNest nest = nestOf(ops);
  Fit best = Fit::No;
  for (const Key &key : nests) {
    Extents extents;
    Fit found = key.fit(nest, &extents);
    if (found == Fit::Full && !guardRefusal(*this, extents).empty())
      found = Fit::Partial;
    best = std::max(best, found);
  }
  if (best == Fit::No)
    return best;
  for (Operation *op : ops)
    if (decides(op) && !dtypeRefusal(*this, op).empty())
      return Fit::No;
  // An op before the nest never gets a place by growing; an op after may yet lead to a named one.
  if (!hasPrologue && prologueOf(ops))
    return Fit::No;
  if (!hasEpilogue && epilogueOf(ops))
    best = Fit::Partial;
  best = std::min(best, mechanism->fits(ops).fit);
  return best == Fit::Full && !kernelRefusal(ops).empty() ? Fit::Partial : best;
}

std::string Card::nestRefusal(ArrayRef<Operation *> ops) const {
  graph::LoopNest nest = nestOf(ops);
  std::string refused, why;
  for (const Key &key : nests) {
    Extents extents;
    if (key.fit(nest, &extents, &why) == Fit::Full &&
        (refused = guardRefusal(*this, extents)).empty())
      return "";
  }
  return refused.empty() ? loopsRefusal(nest, nests, why) : refused;
}

std::string Card::mechanismRefusal(ArrayRef<Operation *> ops) const {
  if (mechanism::Verdict verdict = mechanism->fits(ops); !verdict.isFull())
    return ("'" + mechanism->name + "' cannot compute it: " + verdict.why).str();
  return kernelRefusal(ops);
}

/// Why the holes of a kernel are not those of the ops.
std::string Card::kernelRefusal(ArrayRef<Operation *> ops) const {
  if (mechanism == &mechanism::kKernelNest) {
    std::string why, text = mechanism::readNest(ops, why)->str(!source.empty());
    return text == nestText
               ? ""
               : "its kernel is written for '" + nestText + "', but the group has '" + text + "'";
  }
  size_t count = mechanism::decidersOf(*mechanism, ops).size();
  if (mechanism == &mechanism::kKernelRows && count != (size_t)reductions)
    return "its kernel has holes for " + std::to_string(reductions) +
           " reductions, but the group has " + std::to_string(count);
  return "";
}

std::string Card::refusal(graph::GroupOp group) const {
  return refusal(mechanism::opsOf(group.getBody().front()));
}

std::string Card::refusal(ArrayRef<Operation *> ops) const {
  std::string why;
  if (!nests.empty()) {
    if (why = nestRefusal(ops); !why.empty())
      return why;
    if (mechanism::Verdict verdict = mechanism->fits(ops); !verdict.isFull())
      return ("mechanism '" + mechanism->name + "' cannot carry it out: " + verdict.why).str();
  }
  if (why = aroundRefusal(ops); !why.empty())
    return why;
  for (Operation *op : decidingOps(ops)) {
    if (why = dtypeRefusal(*this, op); !why.empty())
      return why;
    if (keys.empty())
      continue;
    graph::LoopNest nest = skeletonOf(op);
    std::optional<Extents> extents;
    for (const Key &key : keys)
      if ((extents = key.match(nest, &why)))
        break;
    if (!extents)
      return loopsRefusal(nest, keys, why);
    if (std::string refused = guardRefusal(*this, *extents); !refused.empty())
      return refused;
  }
  if (readsParts && *readsParts != mechanism::isReadInParts(ops))
    return *readsParts ? "no product of the group is read in parts"
                       : "the group's product is read in parts";
  return mechanismRefusal(ops);
}

std::string Card::knobRefusal(const KnobValues &values) const {
  for (auto &[name, value] : values) {
    auto known = llvm::map_range(knobs, [](const Knob &knob) { return knob.name; });
    const Knob *found = knob(name);
    if (!found)
      return "card '" + this->name + "' has no knob '" + name +
             "'; its knobs: " + (knobs.empty() ? "none" : llvm::join(known, ", "));
    if (!found->allows(value)) {
      std::string allowed;
      llvm::raw_string_ostream stream(allowed);
      llvm::interleaveComma(found->domain, stream);
      return "knob '" + name + "' is " + std::to_string(value) + ", but card '" + this->name +
             "' allows only [" + allowed + "]";
    }
  }
  return "";
}

llvm::Error apply(const Card &card, graph::GroupOp group, const KnobValues &values) {
  if (std::string why = card.knobRefusal(values); !why.empty())
    return makeError(ErrorCode::Usage, card.path + ": error: " + why);
  RaggedArray<transform::MappedValue> bindings;
  bindings.push_back(SmallVector<transform::MappedValue>{group.getOperation()});
  Builder builder(group.getContext());
  for (const Knob &knob : card.knobs) {
    auto value = values.find(knob.name);
    Attribute number =
        builder.getI64IntegerAttr(value == values.end() ? knob.initial : value->second);
    bindings.push_back(SmallVector<transform::MappedValue>{number});
  }
  std::string messages;
  ScopedDiagnosticHandler handler(group.getContext(), [&](Diagnostic &diagnostic) {
    messages += (messages.empty() ? "" : "; ") + diagnostic.str();
  });
  auto schedule = cast<transform::TransformOpInterface>(card.module.get().lookupSymbol("schedule"));
  if (failed(transform::applyTransformNamedSequence(std::move(bindings), schedule, ModuleOp(),
                                                    transform::TransformOptions())))
    return makeError(ErrorCode::Refused, "group '" + group.getName() + "': card '" + card.name +
                                             "' matched but could not be applied: error: " +
                                             messages + " (" + card.path + ")");
  if (card.mechanism->type == CardType::Kernel) {
    NamedAttrList chosen(group.getScheduleAttr());
    chosen.set("source", builder.getStringAttr(card.source));
    chosen.set("code", builder.getStringAttr(card.code));
    group.setScheduleAttr(chosen.getDictionary(group.getContext()));
  }
  group.setCard(card.name);
  group.setCardHash(card.hash);
  return llvm::Error::success();
}

} // namespace heddle::warehouse
