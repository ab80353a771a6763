// Algebra: apply the equations of arithmetic, of movement, of broadcasts and of windows until none
// applies.
//
//   %1 = graph.add %x, %zero                =>  %x
//   %2 = graph.transpose (graph.transpose)  =>  one transpose, or none
//   %3 = graph.exp (graph.broadcast %s)     =>  graph.broadcast (graph.exp %s)
//
// Every rule makes the graph smaller, or moves work onto fewer elements, so the rules end.

#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rules.h"

using namespace mlir;

namespace heddle::simplify {
namespace {

struct AlgebraPass : PassWrapper<AlgebraPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AlgebraPass)
  StringRef getArgument() const override { return "heddle-simplify-algebra"; }
  StringRef getDescription() const override {
    return "apply the equations of arithmetic, of movement and of broadcasts";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<graph::GraphDialect>();
  }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    addArithmeticRules(patterns);
    addMovementRules(patterns);
    addExtremeRules(patterns);
    addPickRules(patterns);
    addRegroupRules(patterns);
    addRowRules(patterns);
    addBroadcastRules(patterns);
    addTapRules(patterns);
    addScanRules(patterns);
    (void)applyRules(getOperation(), std::move(patterns));
  }
};

} // namespace

std::unique_ptr<Pass> createAlgebraPass() { return std::make_unique<AlgebraPass>(); }

} // namespace heddle::simplify
