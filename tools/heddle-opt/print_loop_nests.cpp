// print_loop_nests: one line an op of the graph dialect: its name and its loop nest.

#include "compiler/graph/LoopNest.h"
#include "tools/heddle-opt/passes.h"

using namespace mlir;

namespace heddle::opt {

#define GEN_PASS_DEF_PRINTLOOPNESTSPASS
#include "tools/heddle-opt/Passes.h.inc"

namespace {
struct PrintLoopNestsPass : impl::PrintLoopNestsPassBase<PrintLoopNestsPass> {
  using PrintLoopNestsPassBase::PrintLoopNestsPassBase;

  void runOnOperation() final {
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa_and_nonnull<graph::GraphDialect>(op->getDialect()) && !isa<graph::YieldOp>(op))
        llvm::outs() << op->getName().getStringRef() << ": " << graph::loopNestOf(op).str(extents)
                     << "\n";
    });
  }
};
} // namespace

} // namespace heddle::opt
