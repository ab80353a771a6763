// apply_card: applies one card to every group that it is for, with its default knobs; the proof
// inside of a card.

#include "compiler/warehouse/Warehouse.h"
#include "tools/heddle-opt/passes.h"

using namespace mlir;

namespace heddle::opt {

#define GEN_PASS_DEF_APPLYCARDPASS
#include "tools/heddle-opt/Passes.h.inc"

namespace {
struct ApplyCardPass : impl::ApplyCardPassBase<ApplyCardPass> {
  using ApplyCardPassBase::ApplyCardPassBase;

  LogicalResult initialize(MLIRContext *context) final {
    auto loaded = warehouse::loadCard(*context, path);
    if (!loaded) {
      llvm::errs() << llvm::toString(loaded.takeError()) << "\n";
      return failure();
    }
    card = std::make_shared<warehouse::Card>(std::move(*loaded));
    return success();
  }

  void runOnOperation() final {
    getOperation().walk([&](graph::GroupOp group) {
      if (std::string refusal = card->refusal(group); !refusal.empty()) {
        group.emitRemark() << "card '" << card->name << "' is not for this group: " << refusal;
        return;
      }
      if (llvm::Error error = warehouse::apply(*card, group)) {
        group.emitError() << llvm::toString(std::move(error));
        signalPassFailure();
      }
    });
  }

private:
  std::shared_ptr<warehouse::Card> card;
};
} // namespace

} // namespace heddle::opt
