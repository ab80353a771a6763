// Broadcasts: compute once what is then repeated.
//
//   f(broadcast a, broadcast b) = broadcast(f(a, b))
//   matmul(a, reshape(broadcast c)) = reshape(matmul(reshape a, c)), c constant
//   gather(x, broadcast i) = broadcast(gather(x, i))
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
        source = Build(rewriter, location).reshape(source, sizes);
        continue;
      }
      source = Build(rewriter, location).reshape(source, {});
      source = Build(rewriter, location).broadcast(source, sizes);
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
      Value one = Build(rewriter, value).scalar(elementOf(value), *number);
      Value wide = Build(rewriter, value).broadcast(one, dimsOf(value));
      rewriter.modifyOpInPlace(op, [&] { operand.set(wide); });
      isChanged = true;
    }
    return success(isChanged);
  }
};

/// matmul(a, transpose(reshape(broadcast c))) = reshape(matmul(reshape a, transpose c)), where the
/// reshape makes one batch of the axis along which a constant is repeated and the next one: what
/// is packed of it is then packed when the model is compiled, and once.
LogicalResult matmulOfRepeated(MatmulOp op, PatternRewriter &rewriter) {
  Value right = op.getB();
  auto transpose = right.getDefiningOp<TransposeOp>();
  auto reshape = (transpose ? transpose.getX() : right).getDefiningOp<ReshapeOp>();
  auto broadcast = reshape ? reshape.getX().getDefiningOp<BroadcastOp>() : nullptr;
  if (!broadcast || !isConstant(broadcast.getX()))
    return failure();
  DimVector sizes = dimsOf(broadcast), merged = dimsOf(reshape), left = dimsOf(op.getA());
  DimVector source = dimsOf(broadcast.getX());
  source.insert(source.begin(), sizes.size() - source.size(), Dim(1));
  bool isBatch = sizes.size() == 4 && merged.size() == 3 && merged[0] == sizes[0] * sizes[1] &&
                 left[0] == merged[0] && source[0].isConstant(1) &&
                 ArrayRef(source).drop_front() == ArrayRef(sizes).drop_front() &&
                 ArrayRef(sizes).take_back(2) == ArrayRef(merged).take_back(2);
  if (!isBatch || (transpose && transpose.getPermutation() != ArrayRef<int64_t>{0, 2, 1}))
    return failure();
  Location location = op.getLoc();
  Value once = Build(rewriter, location).reshape(broadcast.getX(), source);
  if (transpose)
    once = Build(rewriter, location).transpose(once, {0, 1, 3, 2});
  DimVector result = dimsOf(op.getResult());
  Value a = Build(rewriter, location).reshape(op.getA(), {sizes[0], sizes[1], left[1], left[2]});
  Type type = tensorOf(op.getContext(), {sizes[0], sizes[1], result[1], result[2]},
                       elementOf(op.getResult()));
  Value product = rebuild(rewriter, op, {a, once}, type)->getResult(0);
  rewriter.replaceOp(op, Build(rewriter, location).reshape(product, result));
  return success();
}

/// gather(x, broadcast i) = broadcast(gather(x, i)), along the first dimension
LogicalResult gatherOfRepeated(GatherOp op, PatternRewriter &rewriter) {
  auto broadcast = op.getIndices().getDefiningOp<BroadcastOp>();
  if (!broadcast || op.getAxis() != 0)
    return failure();
  DimVector once = dimsOf(broadcast.getX()), repeated = dimsOf(broadcast);
  if (elementCount(once) == elementCount(repeated))
    return failure();
  once.insert(once.begin(), repeated.size() - once.size(), Dim(1));
  Build build(rewriter, op);
  Value indices = build.reshape(broadcast.getX(), once);
  Value gathered = rewriter.create<GatherOp>(op.getLoc(), op.getX(), indices, 0);
  rewriter.replaceOp(op, build.broadcast(gathered, dimsOf(op.getResult())));
  return success();
}

} // namespace

void addBroadcastRules(RewritePatternSet &patterns) {
  patterns.add<ElementwiseOfBroadcasts, SplatOperand>(patterns.getContext());
  patterns.add(matmulOfRepeated);
  patterns.add(gatherOfRepeated);
}

} // namespace heddle::simplify
