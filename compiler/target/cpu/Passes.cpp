// Passes: see Passes.h.

#include "compiler/target/cpu/Passes.h"

#include "compiler/target/cpu/Lower.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace heddle::cpu {

namespace {
/// Lowers a module at once: the type of a function is verified in each that launches it.
struct LowerProgram final : PassWrapper<LowerProgram, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerProgram)
  LowerProgram() = default;
  LowerProgram(const LowerProgram &other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "heddle-lower-program"; }
  StringRef getDescription() const final { return "ops of program become those of LLVM on a CPU"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, vector::VectorDialect, LLVM::LLVMDialect>();
  }
  void runOnOperation() final {
    auto chosen = targetFor(target);
    if (!chosen) {
      getOperation().emitError() << llvm::toString(chosen.takeError());
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(lowerProgram(function, *chosen)))
        return signalPassFailure();
  }
  Option<std::string> target{*this, "target", llvm::cl::init("x86-64-v3"),
                             llvm::cl::desc("CPU, as of heddle compile --target")};
};
} // namespace

void registerPasses() { PassRegistration<LowerProgram>(); }

} // namespace heddle::cpu
