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
    {&mechanism::kNarrowConv, emitNarrowConv},
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
    {&mechanism::kKernelNest, emitHandwritten},
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
  schedule.card = group.cardName();
  schedule.kind = group.kindName();
  schedule.mechanism = mechanism::find(schedule.kind);
  if (DictionaryAttr chosen = group.getSchedule()) {
    for (NamedAttribute field : chosen)
      if (auto number = dyn_cast<IntegerAttr>(field.getValue()))
        schedule.knobs[field.getName().str()] = number.getInt();
    auto textOf = [&](StringRef name) {
      auto text = chosen.getAs<StringAttr>(name);
      return text ? text.str() : "";
    };
    schedule.mechanism = mechanism::find(group.getMechanism());
    schedule.source = textOf("source");
    schedule.code = textOf("code");
  }
  return schedule;
}

Refusal refusal(Block *group, const Schedule &schedule, const program::Machine &machine) {
  using Kind = Refusal::Kind;
  Emit emit = emitterOf(schedule.mechanism);
  if (!emit)
    return {Kind::NotServed, "no card serves a group of kind '" + schedule.kind + "' like it"};
  if (auto verdict = schedule.mechanism->fits(mechanism::opsOf(*group)); !verdict.isFull())
    return {Kind::NotServed,
            verdict.why.empty()
                ? ("the mechanism '" + schedule.mechanism->name + "' needs more than it has").str()
                : verdict.why};
  OwningOpRef<ModuleOp> nowhere = ModuleOp::create(UnknownLoc::get(group->front().getContext()));
  KernelBuilder kernel(*nowhere, "trial", nowhere->getLoc(), machine);
  kernel.isTrial = true;
  if (succeeded(emit(kernel, group, schedule)))
    return {};
  if (kernel.refusal.empty())
    return {Kind::Broken, ("the mechanism '" + schedule.mechanism->name +
                           "' says that it serves it, but cannot be carried out")
                              .str()};
  return {kernel.isAdvice ? Kind::Advice : Kind::Numbers, kernel.refusal};
}

std::vector<Settled> settle(func::FuncOp model, const program::Machine &machine) {
  std::vector<Settled> settled;
  model.walk([&](graph::GroupOp group) {
    Schedule schedule = scheduleOf(group);
    Refusal found = refusal(&group.getBody().front(), schedule, machine);
    if (found.kind != Refusal::Kind::NotServed && found.kind != Refusal::Kind::Numbers)
      return;
    settled.push_back({group.getName().str(),
                       schedule.mechanism ? schedule.mechanism->name.str() : schedule.kind,
                       schedule.card, found.why});
    Builder builder(group.getContext());
    group.clearChoice();
    group.setSchedule(builder.getDictionaryAttr(
        builder.getNamedAttr("form", builder.getStringAttr(mechanism::kPointwise.name))));
  });
  return settled;
}

LogicalResult emitGroup(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Emit emit = emitterOf(schedule.mechanism);
  emitIndexChecks(kernel, group);
  return emit ? emit(kernel, group, schedule) : failure();
}

} // namespace heddle::lower
