// stages: the stages after partition as passes: heddle-plan chooses cards and knobs, heddle-lower
// writes the kernels and the program around them; heddle-verify is what both begin with.
// heddle-short-results is the step between them that stores results as bf16, and
// heddle-rematerialise is the step of planning that saves memory, for groups as they are given.

#include "compiler/lower/Schedule.h"
#include "compiler/lower/ShortResults.h"
#include "compiler/lower/program/Model.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/pipeline/Verify.h"
#include "compiler/plan/Rematerialise.h"
#include "tools/heddle-opt/passes.h"

using namespace mlir;

namespace heddle::opt {

#define GEN_PASS_DEF_PLANPASS
#define GEN_PASS_DEF_REMATERIALISEPASS
#define GEN_PASS_DEF_SHORTRESULTSPASS
#define GEN_PASS_DEF_LOWERPASS
#define GEN_PASS_DEF_VERIFYPASS
#include "tools/heddle-opt/Passes.h.inc"

namespace {
/// A stage of the pipeline on a module whose @main it takes; `Base` has the options.
template <typename Base> struct Stage : Base {
  using Base::Base;
  virtual llvm::Error run(ModuleOp module, func::FuncOp main,
                          std::shared_ptr<const target::Target> target,
                          const program::Machine &machine) = 0;

  void replaceBody(OwningOpRef<ModuleOp> made) {
    this->getOperation().getBodyRegion().takeBody(made->getBodyRegion());
  }

  void runOnOperation() final {
    ModuleOp module = this->getOperation();
    auto main = module.lookupSymbol<func::FuncOp>("main");
    auto chosen = target::targetFor(this->target);
    llvm::Error error = chosen.takeError();
    if (!error && failed(verifyStage(module)))
      return this->signalPassFailure();
    if (!error && !main)
      error = makeError(ErrorCode::Usage, "there is no function @main");
    if (!error)
      error = run(module, main, *chosen, (*chosen)->machine(this->workers));
    if (error) {
      module.emitError() << llvm::toString(std::move(error));
      this->signalPassFailure();
    }
  }
};

struct PlanPass : Stage<impl::PlanPassBase<PlanPass>> {
  using Stage::Stage;

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

struct ShortResultsPass : Stage<impl::ShortResultsPassBase<ShortResultsPass>> {
  using Stage::Stage;

  llvm::Error run(ModuleOp, func::FuncOp main, std::shared_ptr<const target::Target>,
                  const program::Machine &machine) final {
    lower::storeShortResults(main, machine);
    return llvm::Error::success();
  }
};

struct LowerPass : Stage<impl::LowerPassBase<LowerPass>> {
  using Stage::Stage;

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

struct RematerialisePass : impl::RematerialisePassBase<RematerialisePass> {
  using RematerialisePassBase::RematerialisePassBase;

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
};

struct VerifyPass : impl::VerifyPassBase<VerifyPass> {
  void runOnOperation() final {
    if (failed(verifyStage(getOperation())))
      signalPassFailure();
  }
};
} // namespace

} // namespace heddle::opt
