// apply_card: applies one card to every group that it is for, with its default knobs; the proof
// inside of a card.

#include "compiler/warehouse/Warehouse.h"
#include "tools/heddle-opt/passes.h"

using namespace mlir;

namespace heddle::opt {

namespace {
struct ApplyCard : PassWrapper<ApplyCard, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ApplyCard)
  ApplyCard() = default;
  ApplyCard(const ApplyCard &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "heddle-apply-card"; }
  StringRef getDescription() const final { return "apply a card to the groups that it is for"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    warehouse::registerDialects(registry);
  }

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
  Option<std::string> path{*this, "card", llvm::cl::desc("the file of the card")};
};
} // namespace

void registerApplyCard() { PassRegistration<ApplyCard>(); }

} // namespace heddle::opt
