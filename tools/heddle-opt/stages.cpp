// stages: the stages after partition as passes: heddle-plan chooses cards and knobs, heddle-lower
// writes the kernels and the program around them; heddle-verify is what both begin with.
// heddle-rematerialise is the step of planning that saves memory, for groups as they are given.

#include "compiler/lower/Schedule.h"
#include "compiler/lower/program/Model.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/pipeline/Verify.h"
#include "compiler/plan/Rematerialise.h"
#include "compiler/program/Dialect.h"
#include "compiler/warehouse/Warehouse.h"
#include "tools/heddle-opt/passes.h"

using namespace mlir;

namespace heddle::opt {

namespace {
/// A stage of the pipeline on a module whose @main it takes.
class Stage : public OperationPass<ModuleOp> {
public:
  explicit Stage(TypeID id) : OperationPass(id) {}
  Stage(const Stage &other) : OperationPass(other) {}

  void getDependentDialects(DialectRegistry &registry) const final {
    warehouse::registerDialects(registry);
    registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect,
                    program::ProgramDialect, cf::ControlFlowDialect>();
  }

protected:
  virtual llvm::Error run(ModuleOp module, func::FuncOp main,
                          std::shared_ptr<const target::Target> target,
                          const program::Machine &machine) = 0;

  void replaceBody(OwningOpRef<ModuleOp> made) {
    getOperation().getBodyRegion().takeBody(made->getBodyRegion());
  }

private:
  void runOnOperation() final {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    auto chosen = target::targetFor(target);
    llvm::Error error = chosen.takeError();
    if (!error && failed(verifyStage(getOperation())))
      return signalPassFailure();
    if (!error && !main)
      error = makeError(ErrorCode::Usage, "there is no function @main");
    if (!error)
      error = run(getOperation(), main, *chosen, (*chosen)->machine(workers));
    if (error) {
      getOperation().emitError() << llvm::toString(std::move(error));
      signalPassFailure();
    }
  }

  Pass::Option<std::string> target{*this, "target", llvm::cl::init("x86-64-v3"),
                                   llvm::cl::desc("as of heddle compile --target")};
  Pass::Option<int64_t> workers{*this, "workers", llvm::cl::init(2),
                                llvm::cl::desc("threads of a run")};
};

struct PlanPass final : Stage {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlanPass)
  PlanPass() : Stage(TypeID::get<PlanPass>()) {}
  PlanPass(const PlanPass &other) : Stage(other) {}
  StringRef getName() const final { return "PlanPass"; }
  std::unique_ptr<Pass> clonePass() const final { return std::make_unique<PlanPass>(*this); }
  StringRef getArgument() const final { return "heddle-plan"; }
  StringRef getDescription() const final {
    return "groups, and a card with its knobs for each, as the rules choose them";
  }

  llvm::Error run(ModuleOp module, func::FuncOp, std::shared_ptr<const target::Target> target,
                  const program::Machine &machine) final {
    CompileOptions options;
    options.without.insert(without.begin(), without.end());
    options.verifiesStages = true;
    options.memoryLimitBytes = memory;
    Compiled compiled;
    compiled.context = {module.getContext(), [](MLIRContext *) {}}; // it belongs to the driver
    compiled.graph = module.clone();
    compiled.program.model = "@main"; // in messages
    compiled.target = target;
    compiled.machine = machine;
    Stages stages(options);
    if (llvm::Error error = readGiven(compiled, options))
      return error;
    if (llvm::Error error = planGroups(options, compiled, stages))
      return error;
    replaceBody(std::move(compiled.graph));
    for (const Feedback &each : compiled.feedback)
      emitRemark(module.getLoc()) << each.group << " is no " << each.step << ": " << each.why;
    return llvm::Error::success();
  }

  Pass::ListOption<std::string> without{*this, "without", llvm::cl::desc("layers to leave out")};
  Pass::Option<int64_t> memory{*this, "memory", llvm::cl::init(0),
                               llvm::cl::desc("as of heddle compile --memory, in bytes")};
};

/// Refuses schedules that no chooser would have made: their mechanism does not serve the group.
static llvm::Error checkSchedules(func::FuncOp main, const program::Machine &machine) {
  llvm::Error problems = lower::checkDevices(main, machine);
  if (problems)
    return problems;
  main.walk([&](graph::GroupOp group) {
    using Kind = lower::Refusal::Kind;
    lower::Refusal found = lower::refusal(group, machine);
    if (found.kind == Kind::NotServed || found.kind == Kind::Numbers)
      problems =
          llvm::joinErrors(std::move(problems),
                           makeError(ErrorCode::Usage, "group '" + group.getName() +
                                                           "' cannot be lowered: " + found.why));
  });
  return problems;
}

struct LowerPass final : Stage {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerPass)
  LowerPass() : Stage(TypeID::get<LowerPass>()) {}
  LowerPass(const LowerPass &other) : Stage(other) {}
  StringRef getName() const final { return "LowerPass"; }
  std::unique_ptr<Pass> clonePass() const final { return std::make_unique<LowerPass>(*this); }
  StringRef getArgument() const final { return "heddle-lower"; }
  StringRef getDescription() const final {
    return "the kernels of all groups, and the program around them";
  }

  llvm::Error run(ModuleOp, func::FuncOp main, std::shared_ptr<const target::Target>,
                  const program::Machine &machine) final {
    if (llvm::Error error = checkSchedules(main, machine))
      return error;
    program::Program program;
    if (llvm::Error error = lower::lowerModel(main, machine, program))
      return error;
    replaceBody(std::move(program.module));
    return llvm::Error::success();
  }
};

struct RematerialisePass final : PassWrapper<RematerialisePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RematerialisePass)
  RematerialisePass() = default;
  RematerialisePass(const RematerialisePass &other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "heddle-rematerialise"; }
  StringRef getDescription() const final {
    return "groups compute results again, so that few bytes are alive between them";
  }

  void runOnOperation() final {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (main && succeeded(verifyStage(getOperation())) && succeeded(run(main)))
      return;
    if (!main)
      getOperation().emitError("there is no function @main");
    signalPassFailure();
  }

private:
  LogicalResult run(func::FuncOp main) {
    std::map<std::string, int64_t> needed;
    for (const std::string &each : temporaries) {
      auto [group, text] = StringRef(each).rsplit('=');
      if (text.getAsInteger(10, needed[group.str()]))
        return main.emitError() << "'" << each << "' is not group=bytes";
    }
    program::Machine machine; // with the rates that any has
    plan::Rematerialisation found = share > 0
                                        ? plan::rematerialiseWithin(main, share, needed, machine)
                                        : plan::rematerialise(main, bytes, needed, machine);
    emitRemark(main.getLoc()) << found.bytes << " bytes are alive at most, for "
                              << llvm::formatv("{0:F1} %", 100 * found.share).str() << " more time";
    if (auto problem = plan::recompute(main, found.all))
      return main.emitError() << "group '" << problem->first << "': " << problem->second;
    return success();
  }

  Option<int64_t> bytes{*this, "bytes", llvm::cl::init(0),
                        llvm::cl::desc("the most that may be alive, if that is possible")};
  Option<double> share{*this, "share", llvm::cl::init(0),
                       llvm::cl::desc("of the time; instead, the fewest bytes for so much more")};
  ListOption<std::string> temporaries{
      *this, "temporaries", llvm::cl::desc("what groups need while they run: group=bytes")};
};

/// Verifies a module as between two stages.
struct VerifyPass final : PassWrapper<VerifyPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPass)
  StringRef getArgument() const final { return "heddle-verify"; }
  StringRef getDescription() const final { return "symbols are bound, schedules can be read"; }
  void runOnOperation() final {
    if (failed(verifyStage(getOperation())))
      signalPassFailure();
  }
};
} // namespace

void registerStages() {
  for (const target::Backend *backend : target::backends())
    backend->registerPasses();
  PassRegistration<PlanPass>();
  PassRegistration<LowerPass>();
  PassRegistration<RematerialisePass>();
  PassRegistration<VerifyPass>();
}

} // namespace heddle::opt
