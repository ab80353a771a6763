// Card: whether a card is for a group, and carrying its sequence out on one.

#include "compiler/warehouse/Card.h"

#include "compiler/loop/Forms.h"
#include "compiler/support/Error.h"

#include "mlir/Dialect/Transform/Transforms/TransformInterpreterUtils.h"

using namespace mlir;

namespace heddle::warehouse {

const Knob *Card::knob(StringRef wanted) const {
  auto found = llvm::find_if(knobs, [&](const Knob &knob) { return knob.name == wanted; });
  return found == knobs.end() ? nullptr : &*found;
}

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string joinKeys(ArrayRef<Key> keys) {
  return llvm::join(llvm::map_range(keys, [](const Key &key) { return "'" + key.str() + "'"; }),
                    " or ");
}

/// The extent against the card's guards; an extent that only the run knows meets none.
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

graph::LoopNest Card::nestOf(ArrayRef<Operation *> ops) const {
  SmallVector<Operation *> counted(ops);
  if (readsThroughMoves)
    llvm::erase_if(counted, graph::isMove);
  return graph::nestOf(counted);
}

Fit Card::fit(ArrayRef<Operation *> ops) const {
  if (nests.empty())
    return Fit::No;
  graph::LoopNest nest = nestOf(ops);
  std::string why;
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
  return std::min(best, loop::fitsForm(mechanism, ops, why));
}

std::string Card::nestRefusal(ArrayRef<Operation *> ops) const {
  graph::LoopNest nest = nestOf(ops);
  std::string refused;
  for (const Key &key : nests) {
    Extents extents;
    if (key.fit(nest, &extents) == Fit::Full && (refused = guardRefusal(*this, extents)).empty())
      return "";
  }
  return refused.empty() ? "loops '" + nest.str() + "' are not " + joinKeys(nests) : refused;
}

std::string Card::refusal(graph::GroupOp group, StringRef wantedTarget) const {
  if (target != wantedTarget)
    return "its target is '" + target + "', not '" + wantedTarget.str() + "'";
  auto groupKind = group->getAttrOfType<StringAttr>("kind");
  if (!kind.empty() && groupKind && groupKind.getValue() != kind)
    return "the group is built around " + groupKind.str() + ", not " + kind;
  std::string why;
  auto ops =
      llvm::to_vector(llvm::make_pointer_range(group.getBody().front().without_terminator()));
  if (!nests.empty()) {
    if (why = nestRefusal(ops); !why.empty())
      return why;
    if (loop::fitsForm(mechanism, ops, why) != Fit::Full)
      return "mechanism '" + mechanism + "' cannot carry it out: " + why;
  }
  for (Operation *op : decidingOps(group)) {
    if (why = dtypeRefusal(*this, op); !why.empty())
      return why;
    if (keys.empty())
      continue;
    graph::LoopNest nest = skeletonOf(op);
    std::optional<Extents> extents;
    for (const Key &key : keys)
      if ((extents = key.match(nest)))
        break;
    if (!extents)
      return "loops '" + nest.str() + "' are not " + joinKeys(keys);
    if (std::string refused = guardRefusal(*this, *extents); !refused.empty())
      return refused;
  }
  return "";
}

static llvm::Error checkValues(const Card &card, const KnobValues &values) {
  for (auto &[name, value] : values) {
    auto known = llvm::map_range(card.knobs, [](const Knob &knob) { return knob.name; });
    const Knob *knob = card.knob(name);
    if (!knob)
      return makeError(
          ErrorCode::Usage,
          card.path + ": error: card '" + card.name + "' has no knob '" + name +
              "'; its knobs: " + (card.knobs.empty() ? "none" : llvm::join(known, ", ")));
    if (!knob->allows(value)) {
      std::string allowed;
      llvm::raw_string_ostream stream(allowed);
      llvm::interleaveComma(knob->domain, stream);
      return makeError(ErrorCode::Usage, card.path + ": error: knob '" + name + "' is " +
                                             Twine(value) + ", but this card allows only [" +
                                             allowed + "]");
    }
  }
  return llvm::Error::success();
}

llvm::Error apply(const Card &card, graph::GroupOp group, const KnobValues &values) {
  if (llvm::Error error = checkValues(card, values))
    return error;
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
  group->setAttr("card", builder.getStringAttr(card.name));
  group->setAttr("card_hash", builder.getStringAttr(card.hash));
  return llvm::Error::success();
}

} // namespace heddle::warehouse
