// Scales: equations that carry constant factors and shifts into the weights of products.
//
// f is a conv, conv_transpose or matmul whose weights are constant and that nobody else uses; s, b
// are constants that vary along the axis of its output channels alone. Where a product of constants
// might overflow, nothing is carried.

#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

using Rewriter = PatternRewriter;

/// A product with constant weights: which axis of its result, and which axis of its weights, is
/// that of the output channels.
struct Product {
  Operation *op;
  int64_t resultAxis, weightAxis;
  Value weights() const { return op->getOperand(1); }
};

std::optional<Product> productOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<ConvOp, ConvTransposeOp, MatmulOp>(op) || !isFloat(value) ||
      !isConstant(op->getOperand(1)))
    return std::nullopt;
  int64_t rank = rankOf(value);
  if (auto conv = dyn_cast<ConvOp>(op))
    return Product{op, conv.getChannelsLast() ? rank - 1 : 1, 0};
  if (auto conv = dyn_cast<ConvTransposeOp>(op)) {
    if (conv.getGroups() != 1) // w's axis 1 holds the channels of one group only
      return std::nullopt;
    return Product{op, conv.getChannelsLast() ? rank - 1 : 1, 1};
  }
  return Product{op, rank - 1, rank - 1};
}

/// Whether the constant that `wide` repeats has one element for each place along `axis`, or one.
bool variesAlong(Value wide, int64_t axis) {
  auto constant = constantUnder(wide);
  if (!constant)
    return false;
  DimVector sizes = dimsOf(constant.getResult());
  int64_t missing = rankOf(wide) - sizes.size();
  for (auto [i, size] : llvm::enumerate(sizes))
    if (static_cast<int64_t>(i) + missing != axis && !size.isConstant(1))
      return false;
  return true;
}

/// That constant as [n], or as [] where it is one number.
Value vectorOf(Rewriter &rewriter, Value wide) {
  auto constant = constantUnder(wide);
  DimVector vector;
  for (const Dim &size : dimsOf(constant.getResult()))
    if (!size.isConstant(1))
      vector.push_back(size);
  return reshapeTo(rewriter, wide.getLoc(), constant, vector);
}

/// A vector along `axis` (or one number), repeated to `sizes`.
Value spread(Rewriter &rewriter, Value vector, int64_t axis, ArrayRef<Dim> sizes) {
  DimVector aligned;
  if (rankOf(vector) == 1) {
    aligned.assign(sizes.size() - axis, Dim(1));
    aligned[0] = dimsOf(vector)[0];
  }
  vector = reshapeTo(rewriter, vector.getLoc(), vector, aligned);
  return broadcastTo(rewriter, vector.getLoc(), vector, sizes);
}

/// `product` with its weights multiplied by a vector along `axis` of them.
Value scaleWeights(Rewriter &rewriter, Operation *product, Value x, Value vector, int64_t axis) {
  Value weights = product->getOperand(1);
  Value factor = spread(rewriter, vector, axis, dimsOf(weights));
  Value scaled = rewriter.create<MulOp>(product->getLoc(), weights, factor);
  return rebuild(rewriter, product, {x, scaled}, product->getResultTypes())->getResult(0);
}

// f(x, w) * s = f(x, w * s)
LogicalResult mulOfProduct(MulOp op, Rewriter &rewriter) {
  auto product = productOf(op.getX());
  if (!product || !op.getX().hasOneUse() || !variesAlong(op.getY(), product->resultAxis) ||
      !isProductFinite(product->weights(), op.getY()))
    return failure();
  rewriter.replaceOp(op, scaleWeights(rewriter, product->op, product->op->getOperand(0),
                                      vectorOf(rewriter, op.getY()), product->weightAxis));
  return success();
}

// (f(x, w) + b) * s = f(x, w) * s + b * s
LogicalResult mulOfSum(MulOp op, Rewriter &rewriter) {
  auto sum = op.getX().getDefiningOp<AddOp>();
  if (!sum || !sum->hasOneUse() || !sum.getX().hasOneUse() || !isConstant(op.getY()))
    return failure();
  auto product = productOf(sum.getX());
  if (!product || !isProductFinite(product->weights(), op.getY()) ||
      !isProductFinite(sum.getY(), op.getY()) || !variesAlong(op.getY(), product->resultAxis) ||
      !variesAlong(sum.getY(), product->resultAxis))
    return failure();
  Value scaled = rewriter.create<MulOp>(op.getLoc(), sum.getX(), op.getY());
  Value shifted = rewriter.create<MulOp>(op.getLoc(), sum.getY(), op.getY());
  rewriter.replaceOpWithNewOp<AddOp>(op, scaled, shifted);
  return success();
}

// p / c = p * (1 / c), where p is f(x, w) or f(x, w) + b: the factor then goes into w
LogicalResult divOfProduct(DivOp op, Rewriter &rewriter) {
  Value inner = op.getX();
  if (auto sum = inner.getDefiningOp<AddOp>(); sum && sum->hasOneUse() && isConstant(sum.getY()))
    inner = sum.getX();
  auto product = productOf(inner);
  auto size = magnitudesOf(op.getY());
  constexpr double kLeast = 1e-4, kMost = 1e4; // reciprocals stay normal in f16, too
  if (!product || !inner.hasOneUse() || !size || size->smallest < kLeast || size->largest > kMost ||
      !variesAlong(op.getY(), product->resultAxis))
    return failure();
  Location location = op.getLoc();
  Value divisor = constantUnder(op.getY());
  Value one = scalar(rewriter, location, elementOf(divisor), 1);
  one = broadcastTo(rewriter, location, one, dimsOf(divisor));
  Value inverse = rewriter.create<DivOp>(location, one, divisor);
  inverse = broadcastTo(rewriter, location, inverse, dimsOf(op.getY()));
  rewriter.replaceOpWithNewOp<MulOp>(op, op.getX(), inverse);
  return success();
}

// conv(x * s, w) = conv(x, w * s), s along the input channels; zeros of the padding stay zeros
LogicalResult convOfMul(ConvOp op, Rewriter &rewriter) {
  auto mul = op.getX().getDefiningOp<MulOp>();
  if (!mul || !mul->hasOneUse() || op.getGroups() != 1 || !isConstant(op.getW()) ||
      !isFloat(op.getX()) ||
      !variesAlong(mul.getY(), op.getChannelsLast() ? rankOf(op.getX()) - 1 : 1) ||
      !isProductFinite(op.getW(), mul.getY()))
    return failure();
  rewriter.replaceOp(op, scaleWeights(rewriter, op, mul.getX(), vectorOf(rewriter, mul.getY()), 1));
  return success();
}

} // namespace

void addConvScaleRules(RewritePatternSet &patterns) {
  patterns.add(mulOfProduct).add(mulOfSum).add(divOfProduct).add(convOfMul);
}

} // namespace heddle::simplify
