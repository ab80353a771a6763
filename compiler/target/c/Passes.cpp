// Passes: see Passes.h.

#include "compiler/target/c/Passes.h"

#include "compiler/target/c/Emit.h"

using namespace mlir;

namespace heddle::c {

namespace {
struct PrintC final : PassWrapper<PrintC, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintC)
  StringRef getArgument() const final { return "heddle-print-c"; }
  StringRef getDescription() const final { return "prints the functions of a module as C"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry
        .insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  }
  void runOnOperation() final {
    auto text = printFunctions(getOperation());
    if (!text) {
      getOperation().emitError() << llvm::toString(text.takeError());
      return signalPassFailure();
    }
    llvm::outs() << *text;
    getOperation().getBody()->clear();
  }
};
} // namespace

void registerPasses() { PassRegistration<PrintC>(); }

} // namespace heddle::c
