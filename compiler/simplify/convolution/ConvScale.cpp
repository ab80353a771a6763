// ConvScale: carry constant factors of channels into weights (batch normalization).
//
//   (conv(x, w) + b) * s + t  =>  conv(x, w * s) + (b * s + t)
//   conv(x * s, w)            =>  conv(x, w * s)
//
// Needs constants on the right of sums and products, as algebra leaves them. Fold computes the new
// weights. Leaves alone: products that have other users, and conv_transpose with groups.

#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rules.h"

using namespace mlir;

namespace heddle::simplify {
namespace {

struct ConvScalePass : PassWrapper<ConvScalePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvScalePass)
  StringRef getArgument() const override { return "heddle-simplify-conv-scale"; }
  StringRef getDescription() const override {
    return "carry constant factors of channels into weights";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<graph::GraphDialect>();
  }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    addConvScaleRules(patterns);
    (void)applyRules(getOperation(), std::move(patterns));
  }
};

} // namespace

std::unique_ptr<Pass> createConvScalePass() { return std::make_unique<ConvScalePass>(); }

} // namespace heddle::simplify
