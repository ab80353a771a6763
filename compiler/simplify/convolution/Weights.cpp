// Weights: conv(x, broadcast(c)) = conv(x, constant of c), likewise for the right side of a matmul.
//
// Before   %w = graph.broadcast %c : (tensor<f32>) -> tensor<64x3x3x3xf32>
//          %y = graph.conv %x, %w ...
// After    %w = graph.constant dense<0.5> : tensor<64x3x3x3xf32>
//          %y = graph.conv %x, %w ...
// Products take their weights packed, so here, other than everywhere else, a constant is better
// than a broadcast. Needs    folded constants. Leaves alone weights above 512 MiB, which are not
// worth their memory.

#include "compiler/graph/Graph.h"
#include "compiler/reference/Interpreter.h"
#include "compiler/simplify/Passes.h"

using namespace mlir;

namespace heddle::simplify {

#define GEN_PASS_DEF_WEIGHTSPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

constexpr int64_t kWeightLimitBytes = int64_t(1) << 29;

struct WeightsPass : impl::WeightsPassBase<WeightsPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (isa<graph::ConvOp, graph::ConvTransposeOp, graph::MatmulOp>(op))
        rewrite(op->getOpOperand(1));
    });
  }

private:
  static void rewrite(OpOperand &weights) {
    auto broadcast = weights.get().getDefiningOp<graph::BroadcastOp>();
    auto source = broadcast ? broadcast.getX().getDefiningOp<graph::ConstantOp>() : nullptr;
    auto type = cast<RankedTensorType>(weights.get().getType());
    int64_t bytes;
    if (!source || !type.hasStaticShape() ||
        __builtin_mul_overflow(type.getNumElements(), graph::bytesOf(type.getElementType()),
                               &bytes) ||
        bytes > kWeightLimitBytes)
      return;
    OpBuilder builder(broadcast);
    auto splat = dyn_cast<DenseElementsAttr>(source.getValue());
    ElementsAttr value;
    if (splat && splat.isSplat()) {
      value = DenseElementsAttr::get(type, splat.getSplatValue<Attribute>());
    } else {
      std::vector<char> storage;
      auto from = cast<RankedTensorType>(source.getType());
      auto operand = reference::Tensor::borrow(from.getElementType(), from.getShape(),
                                               graph::constantBytes(source.getValue(), storage));
      reference::Environment environment(reference::Limits{2 * kWeightLimitBytes});
      auto result = reference::evaluate(broadcast, {operand}, environment);
      if (!result) {
        llvm::consumeError(result.takeError()); // stays an op, and the run says what is wrong
        return;
      }
      value = graph::constantAttr(type, result->front().bytes());
    }
    weights.set(builder.create<graph::ConstantOp>(broadcast.getLoc(), value));
  }
};

} // namespace

} // namespace heddle::simplify
