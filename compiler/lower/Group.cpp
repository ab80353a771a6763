// Group: carries out the schedule of a group.

#include "compiler/loop/Calls.h"
#include "compiler/lower/Schedule.h"

using namespace mlir;

namespace heddle::lower {

/// What its operands' kernels do not write is copied.
static LogicalResult emitPlace(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  if (!kernel.isTrial)
    emitPointwise(kernel, group, schedule);
  return success();
}

Schedule scheduleOf(graph::GroupOp group) {
  Schedule schedule;
  schedule.group = group.getName().str();
  if (auto card = group->getAttrOfType<StringAttr>("card"))
    schedule.card = card.str();
  if (auto kind = group->getAttrOfType<StringAttr>("kind"))
    schedule.form = kind.str();
  if (auto chosen = group->getAttrOfType<DictionaryAttr>("loop.schedule")) {
    for (NamedAttribute knob : chosen)
      if (auto number = dyn_cast<IntegerAttr>(knob.getValue()))
        schedule.knobs[knob.getName().str()] = number.getInt();
      else if (auto text = dyn_cast<StringAttr>(knob.getValue()))
        (knob.getName() == "source" ? schedule.source
         : knob.getName() == "code" ? schedule.code
                                    : schedule.form) = text.str();
  }
  return schedule;
}

using Emit = LogicalResult (*)(KernelBuilder &, Block *, const Schedule &);

/// Null for the pointwise form, which is for all groups.
static Emit mechanismOf(StringRef form) {
  return llvm::StringSwitch<Emit>(form)
      .Case("rows", emitRows)
      .Case("contraction", emitContraction)
      .Case("few", emitFewFilters)
      .Case("winograd", emitWinograd)
      .Case("stitch", emitStitch)
      .Case("attention", emitAttention)
      .Case("window", emitWindow)
      .Case("serial", emitSerial)
      .Case("place", emitPlace)
      .Cases("kernel.product", "kernel.rows", emitHandwritten)
      .Default(loop::isLibraryFunction(form) ? emitCall : nullptr);
}

Refusal refusal(Block *group, const Schedule &schedule, const loop::Machine &machine) {
  Emit emit = mechanismOf(schedule.form);
  if (!emit && schedule.form != "pointwise")
    return {"no card serves a group of kind '" + schedule.form + "' like it", false};
  OwningOpRef<ModuleOp> nowhere = ModuleOp::create(UnknownLoc::get(group->front().getContext()));
  KernelBuilder kernel(*nowhere, "trial", nowhere->getLoc(), machine);
  kernel.isTrial = true;
  if (!emit || succeeded(emit(kernel, group, schedule)))
    return {"", false};
  if (kernel.refusal.empty())
    return {"the mechanism '" + schedule.form + "' does not serve it", false};
  return {kernel.refusal, kernel.isAdvice};
}

StringRef emitGroup(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Emit emit = mechanismOf(schedule.form);
  emitIndexChecks(kernel, group);
  if (emit && succeeded(emit(kernel, group, schedule)))
    return schedule.form;
  emitPointwise(kernel, group, schedule);
  return "pointwise";
}

} // namespace heddle::lower
