// TransformOps: what all mechanisms share: the text of knobs, their check, and writing the
// schedule.

#include "compiler/loop/TransformOps.h"

#include "compiler/loop/Calls.h"
#include "compiler/loop/Holes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

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

static LogicalResult verifyKnobs(Operation *op, StringRef allowed, ValueRange knobs,
                                 ArrayAttr names) {
  if (knobs.size() != names.size())
    return op->emitOpError() << "has " << names.size() << " names of knobs for " << knobs.size()
                             << " parameters";
  SmallVector<StringRef> known;
  allowed.split(known, ' ', -1, /*KeepEmpty=*/false);
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

static DiagnosedSilenceableFailure writeSchedule(transform::TransformOpInterface op, StringRef form,
                                                 Value group, ValueRange knobs, ArrayAttr names,
                                                 transform::TransformState &state) {
  auto payload = llvm::to_vector(state.getPayloadOps(group));
  if (payload.size() != 1)
    return emitDefiniteFailure(op) << "needs exactly one group, got " << payload.size();
  Builder builder(op.getContext());
  NamedAttrList schedule;
  schedule.set("form", builder.getStringAttr(form));
  for (auto [name, knob] : llvm::zip(names.getAsRange<StringAttr>(), knobs)) {
    ArrayRef<Attribute> values = state.getParams(knob);
    auto value = values.size() == 1 ? dyn_cast<IntegerAttr>(values.front()) : IntegerAttr();
    if (!value)
      return emitDefiniteFailure(op) << "needs one integer for knob '" << name.getValue() << "'";
    // Zero leaves the value to lower, which knows the sizes of the machine's caches.
    if (value.getInt() != 0 || heddle::loop::isHandwritten(form))
      schedule.set(name, builder.getI64IntegerAttr(value.getInt()));
  }
  payload.front()->setAttr(heddle::loop::kScheduleAttr, schedule.getDictionary(op.getContext()));
  return DiagnosedSilenceableFailure::success();
}

DiagnosedSilenceableFailure transform::KernelOp::apply(transform::TransformRewriter &,
                                                       transform::TransformResults &,
                                                       transform::TransformState &state) {
  return writeSchedule(*this, getForm(), getGroup(), getKnobs(), getNames(), state);
}

void transform::KernelOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  onlyReadsHandle(getOperation()->getOpOperands(), effects);
  modifiesPayload(effects);
}

LogicalResult transform::KernelOp::verify() {
  if (getFrame() != "product" && getFrame() != "rows")
    return emitOpError() << "knows no kernels of '" << getFrame() << "'; known: product, rows";
  std::string all;
  for (auto name : getNames().getAsRange<StringAttr>())
    all += (name.getValue() + " ").str();
  return verifyKnobs(*this, all, getKnobs(), getNames());
}

DiagnosedSilenceableFailure transform::CallOp::apply(transform::TransformRewriter &,
                                                     transform::TransformResults &,
                                                     transform::TransformState &state) {
  ArrayAttr none = ArrayAttr::get(getContext(), {});
  return writeSchedule(*this, getForm(), getGroup(), {}, none, state);
}

void transform::CallOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  onlyReadsHandle(getOperation()->getOpOperands(), effects);
  modifiesPayload(effects);
}

LogicalResult transform::CallOp::verify() {
  if (heddle::loop::isLibraryFunction(getFunction()))
    return success();
  return emitOpError() << "knows no function '" << getFunction()
                       << "'; known: " << llvm::join(heddle::loop::libraryFunctions(), ", ");
}

#define GET_OP_CLASSES
#include "compiler/loop/TransformOps.cpp.inc"

namespace heddle::loop {

namespace {
struct TransformOps : transform::TransformDialectExtension<TransformOps> {
  void init() {
    registerTransformOps<
#define GET_OP_LIST
#include "compiler/loop/TransformOps.cpp.inc"
        >();
  }
};
} // namespace

template <typename... Ops> static StringRef formOfAny(Operation *op) {
  StringRef form;
  ((form = isa<Ops>(op) ? cast<Ops>(op).getForm() : form), ...);
  return form;
}

StringRef formOf(Operation *op) {
  return formOfAny<
#define GET_OP_LIST
#include "compiler/loop/TransformOps.cpp.inc"
      >(op);
}

StringRef cardKindOf(Operation *op) {
  return isa<transform::CallOp>(op) ? "call" : isa<transform::KernelOp>(op) ? "kernel" : "schedule";
}

void registerTransformOps(DialectRegistry &registry) { registry.addExtensions<TransformOps>(); }

} // namespace heddle::loop
