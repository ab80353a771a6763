// Simplify: the list of passes between import and partition, and their repetition.

#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rewriting.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace heddle::simplify {

#define GEN_PASS_REGISTRATION
#define GEN_PASS_DEF_FIXPOINTPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

constexpr int kRounds = 4;

/// How many ops give sizes that are known only at run time.
static int64_t openSizes(Operation *module) {
  int64_t count = 0;
  module->walk([&](Operation *op) { count += graph::bindsSizes(op); });
  return count;
}

/// Runs the rules that feed each other until the graph stays as it was, or for so many rounds after
/// the last one that settled sizes: those that follow from them are settled later.
struct FixpointPass : impl::FixpointPassBase<FixpointPass> {
  using FixpointPassBase::FixpointPassBase;

  void runOnOperation() override {
    OpPassManager round(ModuleOp::getOperationName());
    round.addPass(createFoldPass({foldLimitBytes}));
    round.addPass(createShapesPass());
    round.addPass(createAlgebraPass());
    round.addPass(createQuantizedPass());
    // The rules of conv-scale look at constants that algebra has put together.
    round.addPass(createFoldPass({foldLimitBytes}));
    if (!isStrict)
      round.addPass(createConvScalePass());
    round.addPass(createAlgebraPass());
    round.addPass(createFoldPass({foldLimitBytes}));
    round.addPass(createCSEPass());
    OperationFingerPrint before(getOperation());
    int64_t open = openSizes(getOperation());
    for (int left = kRounds; left > 0; --left) {
      if (failed(runPipeline(round, getOperation())))
        return signalPassFailure();
      OperationFingerPrint after(getOperation());
      if (after == before)
        return;
      before = after;
      int64_t stillOpen = openSizes(getOperation());
      if (stillOpen < open)
        left = kRounds + 1;
      open = stillOpen;
    }
  }
};

} // namespace

void addSimplifyPasses(OpPassManager &manager, const SimplifyOptions &options) {
  manager.addPass(createCSEPass());
  if (!options.isStrict)
    manager.addPass(createHalvesPass());
  manager.addPass(createDynamicPass(options.integers, options.prefersUnsigned));
  if (options.prefersUnsigned)
    manager.addPass(createUnsignedPass()); // before zero points become shifts and borders
  manager.addPass(createQuantizedPass());  // before fold makes floats of quantised weights
  manager.addPass(createUnfoldedPass());   // and what is still to be seen of them
  manager.addPass(createStoredPass());     // the rest of such weights
  manager.addPass(createFoldPass({options.foldLimitBytes}));
  manager.addPass(createTreesPass()); // before the rules look at what trees do without
  manager.addPass(createFixpointPass({options.foldLimitBytes, options.isStrict}));
  if (options.channelsLast) {
    manager.addPass(createChannelsLastPass(options.layouts));
    manager.addPass(createWeightsPass());
    manager.addPass(createTransposedConvPass()); // needs channels last and constant weights
    manager.addPass(createFixpointPass({options.foldLimitBytes, options.isStrict}));
  }
  manager.addPass(createTablesPass({options.hasCheapTables}));
  manager.addPass(createWeightsPass());
  manager.addPass(createCSEPass());
  manager.addPass(createUnfoldedPass());
}

void registerSimplifyPasses() {
  registerGeneratedPasses();
  PassPipelineRegistration<>("heddle-simplify", "all of simplify, with channels last",
                             [](OpPassManager &manager) { addSimplifyPasses(manager); });
  PassPipelineRegistration<>(
      "heddle-simplify-channels-first", "all of simplify, layouts as they are",
      [](OpPassManager &manager) { addSimplifyPasses(manager, {.channelsLast = false}); });
}

} // namespace heddle::simplify
