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

#define GEN_PASS_DEF_ALGEBRAPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

struct AlgebraPass : impl::AlgebraPassBase<AlgebraPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    addArithmeticRules(patterns);
    addMovementRules(patterns);
    addExtremeRules(patterns);
    addPickRules(patterns);
    addSliceRules(patterns);
    addRegroupRules(patterns);
    addRowRules(patterns);
    addBroadcastRules(patterns);
    addTapRules(patterns);
    addScanRules(patterns);
    (void)applyRules(getOperation(), std::move(patterns));
  }
};

} // namespace

} // namespace heddle::simplify
