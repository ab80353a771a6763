// Model: kernels of all groups, and the program around them.

#include "compiler/lower/program/Model.h"

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/support/Error.h"

#include "compiler/lower/Functions.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/host/Host.h"
#include "compiler/lower/program/RowTables.h"

using namespace mlir;

namespace heddle::lower {

/// The size that has the rows of a ragged group; "" of others.
static std::string rowsOf(graph::GroupOp group) {
  for (Operation &op : group.getBody().front())
    if (std::string of = graph::rowsOf(&op); !of.empty())
      return of;
  return "";
}

/// Memory of devices that is not the host's, each once.
static std::vector<std::string> spacesOf(const program::Machine &machine) {
  std::vector<std::string> spaces;
  for (size_t i = 0; i <= machine.others.size(); ++i)
    if (const std::string &space = machine.on(i).space;
        !space.empty() && !llvm::is_contained(spaces, space))
      spaces.push_back(space);
  return spaces;
}

/// As Kernel::space.
static int64_t numberOf(const std::string &space, ArrayRef<std::string> spaces) {
  return space.empty() ? 0 : 1 + (llvm::find(spaces, space) - spaces.begin());
}

/// A kernel does not write into the result of one on another device.
static void keepPlacementsOfOneDevice(mechanism::Placements &placements) {
  auto deviceOf = [](Value value) {
    auto group = value.getDefiningOp<graph::GroupOp>();
    return group ? group.deviceNumber() : 0;
  };
  SmallVector<Value> apart;
  for (auto &[part, placement] : placements)
    if (deviceOf(part) != deviceOf(placement.whole))
      apart.push_back(part);
  for (Value part : apart)
    placements.erase(part);
}

llvm::Error lowerModel(func::FuncOp model, const program::Machine &machine,
                       program::Program &program) {
  MLIRContext *context = model.getContext();
  context->loadDialect<arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                       vector::VectorDialect, program::ProgramDialect, cf::ControlFlowDialect>();
  if (llvm::Error error = checkDevices(model, machine))
    return error;
  program.module = ModuleOp::create(model.getLoc());
  std::map<Operation *, std::shared_ptr<Kernel>> kernels;
  SmallVector<const Kernel *> inOrder;
  llvm::Error problems = llvm::Error::success();
  Functions functions(*program.module);
  mechanism::Placements placements = mechanism::placementsOf(model);
  keepPlacementsOfOneDevice(placements);
  program.spaces = spacesOf(machine);
  int64_t number = 0;
  model.walk([&](graph::GroupOp group) {
    std::string name = "kernel" + std::to_string(number++);
    const program::Machine &device = machine.on(group.deviceNumber());
    KernelBuilder builder(*program.module, name, group.getLoc(), device);
    builder.kernel.space = numberOf(device.space, program.spaces);
    builder.kernel.isOfThreads = device.form == program::Form::Threads;
    builder.placements = &placements;
    for (auto [inside, outside] :
         llvm::zip(outputsOf(&group.getBody().front()), group.getResults()))
      if (auto placed = placements.find(outside); placed != placements.end())
        builder.ownPlacements.insert({inside, placed->second});
    std::optional<RowGroup> row;
    if (std::string of = rowsOf(group); !of.empty()) {
      if (model.getOps<graph::RowLengthsOp>().empty()) {
        problems =
            llvm::joinErrors(std::move(problems),
                             llvm::createStringError("internal error: group '" + group.getName() +
                                                     "': nothing gives its rows lengths"));
        return;
      }
      if (builder.kernel.space) {
        problems = llvm::joinErrors(
            std::move(problems),
            makeError(ErrorCode::Refused,
                      "error: group '" + group.getName() +
                          "' has rows of lengths of their own, "
                          "whose kernels only the host launches, but its device is '" +
                          device.device + "'"));
        return;
      }
      row.emplace(group, of);
    }
    bool isDone = succeeded(emitGroup(builder, row ? row->group() : group));
    if (row)
      row->restore(builder.kernel);
    if (!isDone) {
      Schedule schedule = scheduleOf(group);
      std::string name = schedule.mechanism ? schedule.mechanism->name.str() : "";
      problems = llvm::joinErrors(
          std::move(problems),
          llvm::createStringError("internal error: group '" + group.getName() + "': mechanism '" +
                                  name + "' was chosen for it, but cannot carry it out" +
                                  (builder.refusal.empty() ? "" : ": ") + builder.refusal));
      return;
    }
    program.kernels.push_back(group.getName().str());
    llvm::move(builder.kernel.sources, std::back_inserter(program.sources));
    auto kernel = std::make_shared<Kernel>(std::move(builder.kernel));
    functions.add(*kernel);
    inOrder.push_back(kernel.get());
    kernels[group] = std::move(kernel);
  });
  if (problems)
    return problems;
  functions.merge();
  for (const Kernel *kernel : inOrder) {
    std::vector<std::string> &phases = program.functions.emplace_back();
    for (const Phase &phase : kernel->phases)
      phases.push_back(phase.function);
  }
  writeHost(model, kernels, placements, program);
  return llvm::Error::success();
}

} // namespace heddle::lower
