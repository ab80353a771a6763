// Simplify: the list of passes between import and partition, and their repetition.

#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rewriting.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace heddle::simplify {
namespace {

constexpr int kRounds = 4;

/// Runs the rules that feed each other until the graph stays as it was.
struct FixpointPass : PassWrapper<FixpointPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FixpointPass)
  FixpointPass(int64_t foldLimitBytes, bool isStrict)
      : foldLimitBytes(foldLimitBytes), isStrict(isStrict) {}
  StringRef getArgument() const override { return "heddle-simplify-fixpoint"; }
  StringRef getDescription() const override {
    return "fold, shapes, algebra, quantized and conv-scale until nothing changes";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<graph::GraphDialect>();
  }

  void runOnOperation() override {
    OpPassManager round(ModuleOp::getOperationName());
    round.addPass(createFoldPass(foldLimitBytes));
    round.addPass(createShapesPass());
    round.addPass(createAlgebraPass());
    round.addPass(createQuantizedPass());
    // The rules of conv-scale look at constants that algebra has put together.
    round.addPass(createFoldPass(foldLimitBytes));
    if (!isStrict)
      round.addPass(createConvScalePass());
    round.addPass(createAlgebraPass());
    round.addPass(createFoldPass(foldLimitBytes));
    round.addPass(createCSEPass());
    OperationFingerPrint before(getOperation());
    for (int i = 0; i < kRounds; ++i) {
      if (failed(runPipeline(round, getOperation())))
        return signalPassFailure();
      OperationFingerPrint after(getOperation());
      if (after == before)
        return;
      before = after;
    }
  }

private:
  int64_t foldLimitBytes;
  bool isStrict;
};

} // namespace

std::unique_ptr<Pass> createFixpointPass(int64_t foldLimitBytes, bool isStrict) {
  return std::make_unique<FixpointPass>(foldLimitBytes, isStrict);
}

void addSimplifyPasses(OpPassManager &manager, const SimplifyOptions &options) {
  manager.addPass(createCSEPass());
  if (!options.isStrict)
    manager.addPass(createHalvesPass());
  if (options.prefersUnsigned)
    manager.addPass(createUnsignedPass()); // before zero points become shifts and borders
  manager.addPass(createQuantizedPass());  // before fold makes floats of quantised weights
  manager.addPass(createUnfoldedPass());   // and what is still to be seen of them
  manager.addPass(createStoredPass());     // the rest of such weights
  manager.addPass(createFoldPass(options.foldLimitBytes));
  manager.addPass(createTreesPass()); // before the rules look at what trees do without
  manager.addPass(createFixpointPass(options.foldLimitBytes, options.isStrict));
  if (options.channelsLast) {
    manager.addPass(createChannelsLastPass(options.layouts));
    manager.addPass(createWeightsPass());
    manager.addPass(createTransposedConvPass()); // needs channels last and constant weights
    manager.addPass(createFixpointPass(options.foldLimitBytes, options.isStrict));
  }
  manager.addPass(createTablesPass(options.hasCheapTables));
  manager.addPass(createWeightsPass());
  manager.addPass(createCSEPass());
  manager.addPass(createUnfoldedPass());
}

void registerSimplifyPasses() {
  registerPass([] { return createFoldPass(); });
  registerPass(createShapesPass);
  registerPass(createAlgebraPass);
  registerPass(createConvScalePass);
  registerPass(createUnsignedPass);
  registerPass(createQuantizedPass);
  registerPass(createUnfoldedPass);
  registerPass(createStoredPass);
  registerPass([] { return createTablesPass(); });
  registerPass(createTreesPass);
  registerPass(createHalvesPass);
  registerPass([] { return createChannelsLastPass(); });
  registerPass(createTransposedConvPass);
  registerPass(createWeightsPass);
  registerPass([] { return createFixpointPass(); });
  PassPipelineRegistration<>("heddle-simplify", "all of simplify, with channels last",
                             [](OpPassManager &manager) { addSimplifyPasses(manager); });
  PassPipelineRegistration<>(
      "heddle-simplify-channels-first", "all of simplify, layouts as they are",
      [](OpPassManager &manager) { addSimplifyPasses(manager, {.channelsLast = false}); });
}

} // namespace heddle::simplify
