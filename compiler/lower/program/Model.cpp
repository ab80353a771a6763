// Model: kernels of all groups, each distinct function once, and the program around them.

#include "compiler/lower/program/Model.h"

#include "compiler/graph/ragged/Ragged.h"

#include "compiler/lower/Schedule.h"
#include "compiler/lower/program/Host.h"
#include "compiler/lower/program/RowTables.h"

#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace heddle::lower {

namespace {
struct SharedFunctions {
  llvm::StringMap<std::string> nameOf; // by their text
  llvm::StringMap<char> names;
};
} // namespace

/// Groups of one form become functions of one text, however their tensors and weights differ: one
/// of them is enough. Its name is its text's, so that other models have the same function, too.
static void shareFunctions(ModuleOp module, Kernel &kernel, SharedFunctions &functions) {
  for (Phase &phase : kernel.phases) {
    // It is among the last that were made; a search from the front would look at all others.
    auto made = llvm::find_if(llvm::reverse(*module.getBody()), [&](Operation &op) {
      auto function = dyn_cast<func::FuncOp>(op);
      return function && function.getSymName() == phase.function;
    });
    auto function = cast<func::FuncOp>(*made);
    std::string text;
    llvm::raw_string_ostream stream(text);
    function.setSymName("phase");
    function.print(stream, OpPrintingFlags().useLocalScope());
    function.setSymName(phase.function);
    auto [known, isNew] = functions.nameOf.try_emplace(stream.str());
    if (isNew) {
      std::string name =
          "kernel_" + llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, 16);
      while (!functions.names.try_emplace(name).second) // of another text
        name += "x";
      function.setSymName(name);
      known->second = name;
    } else {
      function.erase();
    }
    phase.function = known->second;
  }
}

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
  llvm::Error problems = llvm::Error::success();
  SharedFunctions functions;
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
      std::string name = schedule.mechanism ? schedule.mechanism->name.str() : schedule.kind;
      problems = llvm::joinErrors(
          std::move(problems),
          llvm::createStringError("internal error: group '" + group.getName() + "': mechanism '" +
                                  name + "' was chosen for it, but cannot carry it out" +
                                  (builder.refusal.empty() ? "" : ": ") + builder.refusal));
      return;
    }
    program.kernels.push_back(group.getName().str());
    shareFunctions(*program.module, builder.kernel, functions);
    std::vector<std::string> &phases = program.functions.emplace_back();
    for (const Phase &phase : builder.kernel.phases)
      phases.push_back(phase.function);
    llvm::move(builder.kernel.sources, std::back_inserter(program.sources));
    kernels[group] = std::make_shared<Kernel>(std::move(builder.kernel));
  });
  if (problems)
    return problems;
  return Host(model, kernels, placements, program).write();
}

} // namespace heddle::lower
