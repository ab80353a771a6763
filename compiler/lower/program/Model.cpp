// Model: kernels of all groups, and the program around them.

#include "compiler/lower/program/Model.h"

#include "compiler/graph/ragged/Ragged.h"

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

llvm::Error lowerModel(func::FuncOp model, const program::Machine &machine,
                       program::Program &program) {
  MLIRContext *context = model.getContext();
  context->loadDialect<arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                       vector::VectorDialect, program::ProgramDialect, cf::ControlFlowDialect>();
  program.module = ModuleOp::create(model.getLoc());
  std::map<Operation *, std::shared_ptr<Kernel>> kernels;
  SmallVector<const Kernel *> inOrder;
  llvm::Error problems = llvm::Error::success();
  Functions functions(*program.module);
  mechanism::Placements placements = mechanism::placementsOf(model);
  int64_t number = 0;
  model.walk([&](graph::GroupOp group) {
    std::string name = "kernel" + std::to_string(number++);
    KernelBuilder builder(*program.module, name, group.getLoc(), machine);
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
