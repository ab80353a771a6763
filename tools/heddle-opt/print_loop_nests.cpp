// print_loop_nests: one line an op of the graph dialect: its name and its loop nest.

#include "compiler/graph/LoopNest.h"
#include "tools/heddle-opt/passes.h"

using namespace mlir;

namespace heddle::opt {

namespace {
struct PrintLoopNests : PassWrapper<PrintLoopNests, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintLoopNests)
  PrintLoopNests() = default;
  PrintLoopNests(const PrintLoopNests &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "print-loop-nests"; }
  StringRef getDescription() const final { return "print the loop nest of each op"; }

  void runOnOperation() final {
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa_and_nonnull<graph::GraphDialect>(op->getDialect()) && !isa<graph::YieldOp>(op))
        llvm::outs() << op->getName().getStringRef() << ": " << graph::loopNestOf(op).str(extents)
                     << "\n";
    });
  }

  Option<bool> extents{*this, "extents", llvm::cl::desc("print the sizes of loops"),
                       llvm::cl::init(false)};
};
} // namespace

void registerPrintLoopNests() { PassRegistration<PrintLoopNests>(); }

} // namespace heddle::opt
