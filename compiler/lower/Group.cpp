// Group: carries out the schedule of a group.

#include "compiler/lower/Schedule.h"

using namespace mlir;

namespace heddle::lower {

static LogicalResult emitElements(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  if (!kernel.isTrial)
    emitPointwise(kernel, group, schedule);
  return success();
}

static constexpr Lowering kLowerings[] = {
    {&mechanism::kPointwise, emitElements},
    {&mechanism::kPlace, emitElements}, // what its operands' kernels do not write is copied
    {&mechanism::kRows, emitRows},
    {&mechanism::kContraction, emitContraction},
    {&mechanism::kFewFilters, emitFewFilters},
    {&mechanism::kWinograd, emitWinograd},
    {&mechanism::kStitch, emitStitch},
    {&mechanism::kAttention, emitAttention},
    {&mechanism::kWindow, emitWindow},
    {&mechanism::kSerial, emitSerial},
    {&mechanism::kOnednnMatmul, emitCall},
    {&mechanism::kOnednnConvolution, emitCall},
    {&mechanism::kOnednnLayerNorm, emitCall},
    {&mechanism::kKernelProduct, emitHandwritten},
    {&mechanism::kKernelRows, emitHandwritten},
};

ArrayRef<Lowering> lowerings() { return kLowerings; }

static Emit emitterOf(const mechanism::Mechanism *mechanism) {
  auto found = llvm::find_if(
      kLowerings, [&](const Lowering &lowering) { return lowering.mechanism == mechanism; });
  return found == std::end(kLowerings) ? nullptr : found->emit;
}

Schedule scheduleOf(graph::GroupOp group) {
  Schedule schedule;
  schedule.group = group.getName().str();
  if (auto card = group->getAttrOfType<StringAttr>("card"))
    schedule.card = card.str();
  if (auto kind = group->getAttrOfType<StringAttr>("kind"))
    schedule.kind = kind.str();
  schedule.mechanism = mechanism::find(schedule.kind);
  if (auto chosen = group->getAttrOfType<DictionaryAttr>(mechanism::kScheduleAttr)) {
    for (NamedAttribute field : chosen)
      if (auto number = dyn_cast<IntegerAttr>(field.getValue()))
        schedule.knobs[field.getName().str()] = number.getInt();
    auto textOf = [&](StringRef name) {
      auto text = chosen.getAs<StringAttr>(name);
      return text ? text.str() : "";
    };
    schedule.mechanism = mechanism::find(textOf("form"));
    schedule.source = textOf("source");
    schedule.code = textOf("code");
  }
  return schedule;
}

Refusal refusal(Block *group, const Schedule &schedule, const loop::Machine &machine) {
  Emit emit = emitterOf(schedule.mechanism);
  if (!emit)
    return {"no card serves a group of kind '" + schedule.kind + "' like it", false};
  OwningOpRef<ModuleOp> nowhere = ModuleOp::create(UnknownLoc::get(group->front().getContext()));
  KernelBuilder kernel(*nowhere, "trial", nowhere->getLoc(), machine);
  kernel.isTrial = true;
  if (succeeded(emit(kernel, group, schedule)))
    return {"", false};
  if (kernel.refusal.empty())
    return {("the mechanism '" + schedule.mechanism->name + "' does not serve it").str(), false};
  return {kernel.refusal, kernel.isAdvice};
}

bool emitGroup(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Emit emit = emitterOf(schedule.mechanism);
  emitIndexChecks(kernel, group);
  if (emit && succeeded(emit(kernel, group, schedule)))
    return true;
  emitPointwise(kernel, group, schedule);
  return false;
}

} // namespace heddle::lower
