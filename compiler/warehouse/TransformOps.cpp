// TransformOps: what all mechanisms share: the text of knobs, their check, and writing the
// schedule.

#include "compiler/warehouse/TransformOps.h"

#include "compiler/mechanism/Schedules.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using heddle::mechanism::CardType;
using heddle::mechanism::Mechanism;

/// `m %m n %n`: each parameter is a !transform.param<i64>.
static ParseResult parseKnobs(OpAsmParser &parser,
                              SmallVectorImpl<OpAsmParser::UnresolvedOperand> &knobs,
                              SmallVectorImpl<Type> &types, ArrayAttr &names) {
  SmallVector<Attribute> found;
  Builder &builder = parser.getBuilder();
  auto type = transform::ParamType::get(builder.getContext(), builder.getI64Type());
  std::string name;
  while (succeeded(parser.parseOptionalKeywordOrString(&name))) {
    found.push_back(builder.getStringAttr(name));
    types.push_back(type);
    if (parser.parseOperand(knobs.emplace_back()))
      return failure();
  }
  names = builder.getArrayAttr(found);
  return success();
}

static void printKnobs(OpAsmPrinter &printer, Operation *, OperandRange knobs, TypeRange,
                       ArrayAttr names) {
  for (auto [name, knob] : llvm::zip(names.getAsRange<StringAttr>(), knobs))
    printer << " " << name.getValue() << " " << knob;
}

template <typename Name>
static LogicalResult verifyKnobs(Operation *op, ArrayRef<Name> known, ValueRange knobs,
                                 ArrayAttr names) {
  if (knobs.size() != names.size())
    return op->emitOpError() << "has " << names.size() << " names of knobs for " << knobs.size()
                             << " parameters";
  llvm::StringSet<> seen;
  for (auto name : names.getAsRange<StringAttr>()) {
    if (!llvm::is_contained(known, name.getValue()))
      return op->emitOpError() << "has no knob '" << name.getValue() << "'; its knobs: "
                               << (known.empty() ? "none" : llvm::join(known, ", "));
    if (!seen.insert(name.getValue()).second)
      return op->emitOpError() << "is given knob '" << name.getValue() << "' twice";
  }
  return success();
}

static DiagnosedSilenceableFailure writeSchedule(transform::TransformOpInterface op,
                                                 const Mechanism *mechanism, Value group,
                                                 ValueRange knobs, ArrayAttr names,
                                                 transform::TransformState &state) {
  auto payload = llvm::to_vector(state.getPayloadOps(group));
  if (payload.size() != 1)
    return emitDefiniteFailure(op) << "needs exactly one group, got " << payload.size();
  Builder builder(op.getContext());
  NamedAttrList schedule;
  schedule.set("mechanism", builder.getStringAttr(mechanism->name));
  for (auto [name, knob] : llvm::zip(names.getAsRange<StringAttr>(), knobs)) {
    ArrayRef<Attribute> values = state.getParams(knob);
    auto value = values.size() == 1 ? dyn_cast<IntegerAttr>(values.front()) : IntegerAttr();
    if (!value)
      return emitDefiniteFailure(op) << "needs one integer for knob '" << name.getValue() << "'";
    int64_t number = value.getInt(), most = heddle::mechanism::mostOf(name.getValue());
    if (mechanism->type != CardType::Kernel && (number < 0 || number > most))
      return emitDefiniteFailure(op) << "knob '" << name.getValue() << "' is " << number
                                     << ", but must be from 0 to " << most;
    // Zero leaves the value to lower, which knows the sizes of the machine's caches.
    if (value.getInt() != 0 || mechanism->type == CardType::Kernel)
      schedule.set(name, builder.getI64IntegerAttr(value.getInt()));
  }
  cast<heddle::graph::GroupOp>(payload.front())
      .setScheduleAttr(schedule.getDictionary(op.getContext()));
  return DiagnosedSilenceableFailure::success();
}

DiagnosedSilenceableFailure transform::KernelOp::apply(transform::TransformRewriter &,
                                                       transform::TransformResults &,
                                                       transform::TransformState &state) {
  return writeSchedule(*this, getMechanism(), getGroup(), getKnobs(), getNames(), state);
}

void transform::KernelOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  onlyReadsHandle(getOperation()->getOpOperands(), effects);
  modifiesPayload(effects);
}

/// The names of the mechanisms of a type, without `prefix`.
static std::string namesOf(CardType type, StringRef prefix = "") {
  SmallVector<StringRef> names;
  for (const Mechanism *mechanism : heddle::mechanism::all())
    if (mechanism->type == type)
      names.push_back(mechanism->name.substr(prefix.size()));
  return llvm::join(names, ", ");
}

LogicalResult transform::KernelOp::verify() {
  if (!getMechanism())
    return emitOpError() << "knows no kernels of '" << getFrame()
                         << "'; known: " << namesOf(CardType::Kernel, "kernel.");
  auto names = getNames().getAsRange<StringAttr>();
  auto all = llvm::to_vector(
      llvm::map_range(names, [](StringAttr name) { return StringRef(name.getValue()); }));
  return verifyKnobs<StringRef>(*this, all, getKnobs(), getNames());
}

DiagnosedSilenceableFailure transform::CallOp::apply(transform::TransformRewriter &,
                                                     transform::TransformResults &,
                                                     transform::TransformState &state) {
  ArrayAttr none = ArrayAttr::get(getContext(), {});
  return writeSchedule(*this, getMechanism(), getGroup(), {}, none, state);
}

void transform::CallOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  onlyReadsHandle(getOperation()->getOpOperands(), effects);
  modifiesPayload(effects);
}

LogicalResult transform::CallOp::verify() {
  if (getMechanism() && getMechanism()->type == CardType::Call)
    return success();
  return emitOpError() << "knows no function '" << getFunction()
                       << "'; known: " << namesOf(CardType::Call);
}

#define GET_OP_CLASSES
#include "compiler/warehouse/TransformOps.cpp.inc"

namespace heddle::warehouse {

namespace {
struct TransformOps : transform::TransformDialectExtension<TransformOps> {
  void init() {
    registerTransformOps<
#define GET_OP_LIST
#include "compiler/warehouse/TransformOps.cpp.inc"
        >();
  }
};
} // namespace

template <typename... Ops> static const Mechanism *mechanismOfAny(Operation *op) {
  const Mechanism *mechanism = nullptr;
  ((mechanism = isa<Ops>(op) ? cast<Ops>(op).getMechanism() : mechanism), ...);
  return mechanism;
}

const Mechanism *mechanismOf(Operation *op) {
  return mechanismOfAny<
#define GET_OP_LIST
#include "compiler/warehouse/TransformOps.cpp.inc"
      >(op);
}

void registerTransformOps(DialectRegistry &registry) { registry.addExtensions<TransformOps>(); }

} // namespace heddle::warehouse
