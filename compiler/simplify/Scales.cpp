// Scales: equations that carry constant factors and shifts into the weights of products.
//
// f is a conv, conv_transpose or matmul whose weights are constant and that nobody else uses; s, b
// are constants that vary along the axis of its output channels alone. Nothing is carried if a
// product of constants might overflow. The rules round otherwise than the ops: `--math strict` does
// without.

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

/// The constant under `wide` as [n], or as [] if it is one number.
Value vectorOf(Rewriter &rewriter, Value wide) {
  Value constant = constantUnder(wide);
  return Build(rewriter, constant).withoutOnes(constant);
}

/// `product` with its weights multiplied by a vector along `axis` of them.
Value scaleWeights(Rewriter &rewriter, Operation *product, Value x, Value vector, int64_t axis) {
  Value weights = product->getOperand(1);
  Value factor = Build(rewriter, vector).along(vector, axis, dimsOf(weights));
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

// (f(x, w) + b) + d = f(x, w) + (b + d), where b and d are no larger than results of f: a large d
// is added to round to its last place
LogicalResult addOfSum(AddOp op, Rewriter &rewriter) {
  constexpr double kMost = 1e3;
  auto isSmall = [](Value constant) {
    auto size = isConstant(constant) ? magnitudesOf(constant) : std::nullopt;
    return size && size->largest <= kMost;
  };
  auto sum = op.getX().getDefiningOp<AddOp>();
  if (!sum || !sum->hasOneUse() || !productOf(sum.getX()) || !isSmall(sum.getY()) ||
      !isSmall(op.getY()))
    return failure();
  Value both = rewriter.create<AddOp>(op.getLoc(), sum.getY(), op.getY());
  rewriter.replaceOpWithNewOp<AddOp>(op, sum.getX(), both);
  return success();
}

/// Whether the reciprocals of a constant are normal numbers, even in f16.
bool isInvertible(Value constant) {
  constexpr double kLeast = 1e-4, kMost = 1e4;
  auto size = magnitudesOf(constant);
  return size && !size->hasZero && size->smallest >= kLeast && size->largest <= kMost;
}

Value inverseOf(Rewriter &rewriter, Value wide) {
  Value divisor = constantUnder(wide);
  Value one = Build(rewriter, wide).scalar(elementOf(divisor), 1);
  one = Build(rewriter, wide).broadcast(one, dimsOf(divisor));
  Value inverse = rewriter.create<DivOp>(wide.getLoc(), one, divisor);
  return Build(rewriter, wide).broadcast(inverse, dimsOf(wide));
}

// p / c = p * (1 / c), where p is f(x, w) or f(x, w) + b: the factor then goes into w
LogicalResult divOfProduct(DivOp op, Rewriter &rewriter) {
  Value inner = op.getX();
  if (auto sum = inner.getDefiningOp<AddOp>(); sum && sum->hasOneUse() && isConstant(sum.getY()))
    inner = sum.getX();
  auto product = productOf(inner);
  if (!product || !inner.hasOneUse() || !variesAlong(op.getY(), product->resultAxis) ||
      !isInvertible(op.getY()))
    return failure();
  rewriter.replaceOpWithNewOp<MulOp>(op, op.getX(), inverseOf(rewriter, op.getY()));
  return success();
}

/// Along which axis of w a factor of x's channels goes; nullopt if w shares it among groups.
std::optional<int64_t> inputAxis(ConvOp op, Value factor) {
  int64_t channelAxis = op.getChannelsLast() ? rankOf(op.getX()) - 1 : 1;
  if (!isConstant(op.getW()) || !isFloat(op.getX()) || !variesAlong(factor, channelAxis))
    return std::nullopt;
  if (op.getGroups() == 1 || splatOf(factor))
    return 1;
  DimVector w = dimsOf(op.getW());
  bool isDepthwise = w[1].isConstant(1) && w[0].isConstant(op.getGroups());
  return isDepthwise ? std::optional<int64_t>(0) : std::nullopt;
}

// conv(x * s, w) = conv(x, w * s), s along the input channels; zeros of the padding stay zeros
LogicalResult convOfMul(ConvOp op, Rewriter &rewriter) {
  auto mul = op.getX().getDefiningOp<MulOp>();
  auto axis = mul && mul->hasOneUse() ? inputAxis(op, mul.getY()) : std::nullopt;
  if (!axis || !isProductFinite(op.getW(), mul.getY()))
    return failure();
  Value vector;
  if (auto number = splatOf(mul.getY()))
    vector = Build(rewriter, op).scalar(elementOf(mul.getY()), *number);
  else
    vector = vectorOf(rewriter, mul.getY());
  rewriter.replaceOp(op, scaleWeights(rewriter, op, mul.getX(), vector, *axis));
  return success();
}

// conv(x / c, w) = conv(x * (1 / c), w): the factor then goes into w
LogicalResult convOfDiv(ConvOp op, Rewriter &rewriter) {
  auto div = op.getX().getDefiningOp<DivOp>();
  if (!div || !div->hasOneUse() || !inputAxis(op, div.getY()) || !isInvertible(div.getY()))
    return failure();
  Value inverse = inverseOf(rewriter, div.getY());
  Value mul = rewriter.create<MulOp>(div.getLoc(), div.getX(), inverse);
  rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(mul); });
  return success();
}

} // namespace

void addConvScaleRules(RewritePatternSet &patterns) {
  patterns.add(mulOfProduct)
      .add(mulOfSum)
      .add(addOfSum)
      .add(divOfProduct)
      .add(convOfMul)
      .add(convOfDiv);
}

} // namespace heddle::simplify
