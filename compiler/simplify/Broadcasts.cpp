// Broadcasts: compute once what is then repeated.
//
//   f(broadcast a, broadcast b) = broadcast(f(a, b))
//
// a and b have one shape but for leading sizes of 1, or one of them has one element. So scalar and
// per-channel arithmetic is done on the small tensors, where Fold finds it when they are constants.

#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

bool isSingle(Value x) { return elementCount(dimsOf(x)).isConstant(1); }

DimVector withoutLeadingOnes(Value x) {
  DimVector sizes = dimsOf(x);
  while (!sizes.empty() && sizes.front().isConstant(1))
    sizes.erase(sizes.begin());
  return sizes;
}

/// f(broadcast a, broadcast b) = broadcast(f(a, b))
struct ElementwiseOfBroadcasts : RewritePattern {
  explicit ElementwiseOfBroadcasts(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<Elementwise>() || op->getNumOperands() == 0)
      return failure();
    SmallVector<Value> sources;
    Value largest;
    for (Value operand : op->getOperands()) {
      auto broadcast = operand.getDefiningOp<BroadcastOp>();
      if (!broadcast)
        return failure();
      Value source = broadcast.getX();
      sources.push_back(source);
      if (!largest || std::pair(!isSingle(source), rankOf(source)) >
                          std::pair(!isSingle(largest), rankOf(largest)))
        largest = source;
    }
    DimVector sizes = dimsOf(largest);
    for (Value source : sources)
      if (withoutLeadingOnes(source) != withoutLeadingOnes(largest) && !isSingle(source))
        return failure();
    if (elementCount(sizes) == elementCount(dimsOf(op->getOperand(0))))
      return failure();
    Location location = op->getLoc();
    for (Value &source : sources) {
      if (!isSingle(source) || isSingle(largest)) {
        source = reshapeTo(rewriter, location, source, sizes);
        continue;
      }
      source = reshapeTo(rewriter, location, source, {});
      source = broadcastTo(rewriter, location, source, sizes);
    }
    Value result = op->getResult(0);
    Type small = tensorOf(op->getContext(), sizes, elementOf(result));
    Operation *once = rebuild(rewriter, op, sources, small);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, result.getType(), once->getResult(0));
    return success();
  }
};

/// f(x, [c, c, ... c]) = f(x, broadcast c)
struct SplatOperand : RewritePattern {
  explicit SplatOperand(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<Elementwise>())
      return failure();
    bool isChanged = false;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (!value.getDefiningOp<ConstantOp>() || !isFloat(value) || isSingle(value))
        continue;
      auto number = splatOf(value);
      if (!number)
        continue;
      Value one = scalar(rewriter, value.getLoc(), elementOf(value), *number);
      Value wide = broadcastTo(rewriter, value.getLoc(), one, dimsOf(value));
      rewriter.modifyOpInPlace(op, [&] { operand.set(wide); });
      isChanged = true;
    }
    return success(isChanged);
  }
};

} // namespace

void addBroadcastRules(RewritePatternSet &patterns) {
  patterns.add<ElementwiseOfBroadcasts, SplatOperand>(patterns.getContext());
}

} // namespace heddle::simplify
