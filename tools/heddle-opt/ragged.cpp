// ragged: heddle-ragged makes a module ragged, as `heddle compile --ragged` does.

#include "compiler/ragged/Ragged.h"
#include "tools/heddle-opt/passes.h"

using namespace mlir;

namespace heddle::opt {

#define GEN_PASS_DEF_RAGGEDPASS
#include "tools/heddle-opt/Passes.h.inc"

namespace {
struct RaggedPass : impl::RaggedPassBase<RaggedPass> {
  using RaggedPassBase::RaggedPassBase;

  void runOnOperation() final {
    llvm::Error error = ragged::declare(getOperation(), rows, packs);
    if (!error)
      error = ragged::convert(getOperation());
    if (!error)
      return;
    getOperation().emitError() << llvm::toString(std::move(error));
    signalPassFailure();
  }
};
} // namespace

} // namespace heddle::opt
