// ragged: heddle-ragged makes a module ragged, as `heddle compile --ragged` does.

#include "compiler/ragged/Ragged.h"
#include "tools/heddle-opt/passes.h"

using namespace mlir;

namespace heddle::opt {

namespace {
struct MakeRagged : PassWrapper<MakeRagged, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MakeRagged)
  MakeRagged() = default;
  MakeRagged(const MakeRagged &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "heddle-ragged"; }
  StringRef getDescription() const final { return "rows have lengths of their own"; }

  void runOnOperation() final {
    llvm::Error error = ragged::declare(getOperation(), rows, packs);
    if (!error)
      error = ragged::convert(getOperation());
    if (!error)
      return;
    getOperation().emitError() << llvm::toString(std::move(error));
    signalPassFailure();
  }

  Option<std::string> rows{*this, "rows", llvm::cl::desc("batch:seq=lengths")};
  Option<bool> packs{*this, "packs", llvm::cl::desc("results are packed")};
};
} // namespace

void registerMakeRagged() { PassRegistration<MakeRagged>(); }

} // namespace heddle::opt
