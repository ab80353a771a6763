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

#define GEN_PASS_DEF_CONVSCALEPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

struct ConvScalePass : impl::ConvScalePassBase<ConvScalePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    addConvScaleRules(patterns);
    (void)applyRules(getOperation(), std::move(patterns));
  }
};

} // namespace

} // namespace heddle::simplify
