// Group: carries out the schedule of a group.

#include "compiler/lower/Schedule.h"

#include "compiler/estimate/Precision.h"
#include "compiler/lower/pointwise/Columns.h"
#include "compiler/mechanism/Product.h"
#include "compiler/mechanism/Versions.h"
#include "compiler/mechanism/attention/Attention.h"
#include "compiler/support/Error.h"
#include "compiler/support/Mapped.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace heddle::lower {

static LogicalResult emitElements(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  if (!kernel.isTrial && !emitColumns(kernel, group, schedule))
    emitPointwise(kernel, group, schedule);
  return success();
}

/// A thread has one element of the result.
static LogicalResult emitThreads(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Schedule one = schedule;
  one.knobs["chunk"] = 1;
  if (!kernel.isTrial)
    emitPointwise(kernel, group, one);
  return success();
}

/// A product by teams; on devices without such, and where it rounds rows in blocks, by threads that
/// have an element each.
static LogicalResult emitProduct(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  bool isByElement =
      kernel.machine.mostThreads == 1 || mechanism::roundsBlocks(mechanism::opsOf(*group));
  return (isByElement ? emitThreads : emitThreadProduct)(kernel, group, schedule);
}

/// Refuses what only threads of a block can do together.
template <Emit emit>
static LogicalResult byBlocks(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  if (kernel.machine.mostThreads == 1)
    return kernel.refuse("threads of device '" + kernel.machine.device + "' share no memory");
  return emit(kernel, group, schedule);
}

static LogicalResult emitThreadAttention(KernelBuilder &kernel, Block *group,
                                         const Schedule &schedule) {
  bool isOfFragments =
      schedule.isShort || mechanism::fragmentsOf(mechanism::opsOf(*group), /*isShort=*/false);
  return (isOfFragments ? emitFragmentAttention : emitNumberAttention)(kernel, group, schedule);
}

using program::Form;

static constexpr Lowering kLowerings[] = {
    {&mechanism::kPointwise, Form::Lanes, emitElements},
    // Copies elements that its operands' kernels do not write.
    {&mechanism::kPlace, Form::Lanes, emitElements},
    {&mechanism::kRows, Form::Lanes, emitRows},
    {&mechanism::kContraction, Form::Lanes, emitContraction},
    {&mechanism::kNarrowConv, Form::Lanes, emitNarrowConv},
    {&mechanism::kWinograd, Form::Lanes, emitWinograd},
    {&mechanism::kFilterGradient, Form::Lanes, emitFilterGradient},
    {&mechanism::kStitch, Form::Lanes, emitStitch},
    {&mechanism::kAttention, Form::Lanes, emitAttention},
    {&mechanism::kAttentionGradient, Form::Lanes, emitAttentionGradient},
    {&mechanism::kWindow, Form::Lanes, emitWindow},
    {&mechanism::kSerial, Form::Lanes, emitSerial},
    {&mechanism::kOnednnMatmul, Form::Lanes, emitCall},
    {&mechanism::kOnednnConvolution, Form::Lanes, emitCall},
    {&mechanism::kOnednnLayerNorm, Form::Lanes, emitCall},
    {&mechanism::kKernelProduct, Form::Lanes, emitHandwritten},
    {&mechanism::kKernelRows, Form::Lanes, emitHandwritten},
    {&mechanism::kKernelNest, Form::Lanes, emitHandwritten},
    {&mechanism::kPointwise, Form::Threads, emitThreads},
    {&mechanism::kPlace, Form::Threads, emitThreads},
    {&mechanism::kSerial, Form::Threads, emitSerial},
    {&mechanism::kRows, Form::Threads, emitRows},
    {&mechanism::kContraction, Form::Threads, emitProduct},
    {&mechanism::kNarrowConv, Form::Threads, emitProduct},
    {&mechanism::kWinograd, Form::Threads, emitProduct},
    {&mechanism::kStitch, Form::Threads, byBlocks<emitBlockStitch>},
    {&mechanism::kAttention, Form::Threads, byBlocks<emitThreadAttention>},
    {&mechanism::kWindow, Form::Threads, emitThreads},
    {&mechanism::kFilterGradient, Form::Threads, emitThreads},
};

ArrayRef<Lowering> lowerings() { return kLowerings; }

static Emit emitterOf(const mechanism::Mechanism *mechanism, Form form) {
  auto found = llvm::find_if(kLowerings, [&](const Lowering &lowering) {
    return lowering.mechanism == mechanism && lowering.form == form;
  });
  return found == std::end(kLowerings) ? nullptr : found->emit;
}

/// The schedule that the dictionary says, null if nothing was chosen.
static Schedule scheduleOf(graph::GroupOp group, DictionaryAttr chosen) {
  Schedule schedule;
  schedule.group = group.getName().str();
  schedule.card = group.cardName();
  schedule.isShort = group.isShort();
  schedule.mechanism = chosen ? mechanism::chosenFor(group) : mechanism::of(group);
  if (chosen) {
    if (auto precision = chosen.getAs<StringAttr>(mechanism::kPrecision))
      schedule.isShort = precision == graph::GroupOp::kShort;
    for (NamedAttribute field : chosen)
      if (auto number = dyn_cast<IntegerAttr>(field.getValue()))
        schedule.knobs[field.getName().str()] = number.getInt();
    auto textOf = [&](StringRef name) {
      auto text = chosen.getAs<StringAttr>(name);
      return text ? text.str() : "";
    };
    schedule.source = textOf("source");
    schedule.code = textOf("code");
  }
  return schedule;
}

Schedule scheduleOf(graph::GroupOp group) { return scheduleOf(group, group.getScheduleAttr()); }

std::vector<Version> versionsOf(graph::GroupOp group) {
  std::vector<Version> versions;
  DictionaryAttr chosen = group.getScheduleAttr();
  auto others = chosen ? chosen.getAs<ArrayAttr>(mechanism::kVersions) : ArrayAttr();
  for (Attribute other : others ? others.getValue() : ArrayRef<Attribute>()) {
    auto schedule = cast<DictionaryAttr>(other);
    Version &version = versions.emplace_back();
    version.schedule = scheduleOf(group, schedule);
    for (NamedAttribute bound : schedule.getAs<DictionaryAttr>(mechanism::kWhen))
      version.bounds.push_back(
          {*Dim::parse(bound.getName().strref()), cast<IntegerAttr>(bound.getValue()).getInt()});
  }
  versions.push_back({{}, scheduleOf(group)});
  return versions;
}

static Refusal refusal(Block *group, const Schedule &schedule, const program::Machine &machine) {
  using Kind = Refusal::Kind;
  if (!schedule.mechanism)
    return {Kind::NotServed, "the group names no mechanism that is known here"};
  Emit emit = emitterOf(schedule.mechanism, machine.form);
  if (!emit)
    return {Kind::NotServed,
            ("the mechanism '" + schedule.mechanism->name + "' has no code for device '" +
             machine.device + "', whose tasks are " +
             (machine.form == Form::Threads ? "threads" : "lanes"))
                .str()};
  if (!machine.space.empty() && (emit == emitCall || emit == emitHandwritten))
    return {Kind::NotServed, ("the mechanism '" + schedule.mechanism->name +
                              "' is for the host's memory, but device '" + machine.device +
                              "' has memory '" + machine.space + "'")
                                 .str()};
  if (auto verdict = schedule.mechanism->fits(mechanism::opsOf(*group)); !verdict.isFull())
    return {Kind::NotServed,
            verdict.why.empty()
                ? ("the mechanism '" + schedule.mechanism->name + "' needs more than it has").str()
                : verdict.why};
  if (schedule.isShort)
    if (std::string why =
            estimate::whyNotShort(*schedule.mechanism, mechanism::opsOf(*group), machine);
        !why.empty())
      return {Kind::NotServed, "its precision is bf16, but " + why};
  OwningOpRef<ModuleOp> nowhere = ModuleOp::create(UnknownLoc::get(group->front().getContext()));
  KernelBuilder kernel(*nowhere, "trial", nowhere->getLoc(), machine);
  kernel.isTrial = true;
  if (succeeded(emit(kernel, group, schedule)))
    return {Kind::None, "", kernel.stitching};
  if (kernel.refusal.empty())
    return {Kind::Broken, ("the mechanism '" + schedule.mechanism->name +
                           "' says that it serves it, but cannot be carried out")
                              .str()};
  return {Kind::Numbers, kernel.refusal};
}

/// "" if the machine has the group's device, else why not.
static std::string whyNoDevice(graph::GroupOp group, const program::Machine &machine) {
  int64_t most = machine.others.size();
  return group.deviceNumber() <= most
             ? ""
             : "its device is " + std::to_string(group.deviceNumber()) +
                   ", but the last one of the target is " + std::to_string(most);
}

llvm::Error checkDevices(func::FuncOp model, const program::Machine &machine) {
  llvm::Error problems = llvm::Error::success();
  model.walk([&](graph::GroupOp group) {
    if (std::string why = whyNoDevice(group, machine); !why.empty())
      problems = llvm::joinErrors(
          std::move(problems),
          makeError(ErrorCode::Usage, "error: group '" + group.getName() + "': " + why));
  });
  return problems;
}

Refusal refusal(graph::GroupOp group, const program::Machine &machine) {
  if (std::string why = whyNoDevice(group, machine); !why.empty())
    return {Refusal::Kind::NotServed, why};
  Refusal found;
  for (const Version &version : versionsOf(group)) {
    found = refusal(&group.getBody().front(), version.schedule, machine.on(group.deviceNumber()));
    if (found.kind != Refusal::Kind::None)
      break;
  }
  return found;
}

std::vector<Settled> settle(func::FuncOp model, const program::Machine &machine) {
  std::vector<Settled> settled;
  model.walk([&](graph::GroupOp group) {
    Schedule schedule = scheduleOf(group);
    Refusal found = refusal(group, machine);
    if (found.kind != Refusal::Kind::NotServed && found.kind != Refusal::Kind::Numbers)
      return;
    settled.push_back({group.getName().str(),
                       schedule.mechanism ? schedule.mechanism->name.str() : "", schedule.card,
                       found.why});
    Builder builder(group.getContext());
    auto pointwise = builder.getStringAttr(mechanism::kPointwise.name);
    group.clearChoice();
    group.setScheduleAttr(
        builder.getDictionaryAttr(builder.getNamedAttr(group.getMechanismAttrName(), pointwise)));
  });
  return settled;
}

/// One version after the other; `visit` sees the kernel after each.
static LogicalResult emitVersions(KernelBuilder &kernel, graph::GroupOp group,
                                  llvm::function_ref<void()> visit) {
  std::vector<Version> versions = versionsOf(group);
  for (Version &version : versions) {
    if (versions.size() > 1)
      kernel.beginVersion(std::move(version.bounds));
    Emit emit = emitterOf(version.schedule.mechanism, kernel.machine.form);
    if (!emit || failed(emit(kernel, &group.getBody().front(), version.schedule)))
      return failure();
    visit();
  }
  return success();
}

bool sharesData(graph::GroupOp group, const program::Machine &machine) {
  OwningOpRef<ModuleOp> nowhere = ModuleOp::create(UnknownLoc::get(group.getContext()));
  nowhere->getContext()
      ->loadDialect<arith::ArithDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect,
                    program::ProgramDialect>();
  KernelBuilder kernel(*nowhere, "trial", nowhere->getLoc(), machine.on(group.deviceNumber()));
  llvm::SmallSet<size_t, 4> counts;
  return failed(emitVersions(kernel, group, [&] { counts.insert(kernel.kernel.data.size()); })) ||
         counts.size() == 1;
}

static void letPagesGo(ElementsAttr weights) {
  if (auto stored = dyn_cast<graph::StoredAttr>(weights))
    weights = stored.getCodes();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(graph::codesOf(weights)))
    support::letPagesGo(resource.getRawHandle().getBlob()->getData());
}

/// Lets weights go: kernels have what they read of them in their own order now.
static void letWeightsGo(graph::GroupOp group) {
  group.walk([](Operation *op) {
    for (Value operand : op->getOperands())
      if (auto constant = operand.getDefiningOp<graph::ConstantOp>())
        letPagesGo(constant.getValue());
  });
}

LogicalResult emitGroup(KernelBuilder &kernel, graph::GroupOp group) {
  emitIndexChecks(kernel, group);
  LogicalResult result = emitVersions(kernel, group, [] {});
  letWeightsGo(group);
  return result;
}

} // namespace heddle::lower
