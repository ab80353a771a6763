// Steps: divisions by the steps of a quantisation become products.
//
// x / s and x * (1 / s) round differently, so that now and then the integer after them would be
// another one. But a dequantised tensor has few values: 256, and 65536 if two are added. The rules
// here compute both forms of all of them, and take the product only if it gives the same integers.
// A bound that the bounds of the 8 bits imply is dropped.

#include "compiler/simplify/Rules.h"
#include "compiler/simplify/quantized/Operand.h"

#include <cmath>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

using Floats = std::vector<float>;

/// All values of (q - zero) * scale, one for each q of 8 bits or less.
std::optional<Floats> valuesOfDequantized(Value value, std::optional<double> scale = {}) {
  auto operand = readDequantized(value);
  if (!operand || !operand->isUniform())
    return std::nullopt;
  auto zero = operand->zero ? numberOf(operand->zero) : std::optional<double>(0);
  if (!scale)
    scale = splatOf(operand->scale);
  if (!zero || !scale)
    return std::nullopt;
  auto element = cast<IntegerType>(elementOf(operand->x));
  int64_t count = int64_t(1) << element.getWidth();
  int64_t least = element.isUnsigned() ? 0 : -count / 2;
  Floats values;
  for (int64_t q = least; q < least + count; ++q)
    values.push_back(static_cast<float>(q - static_cast<int64_t>(*zero)) *
                     static_cast<float>(*scale));
  return values;
}

/// All values that x may have, as f32 computes them; nullopt if they are too many to try.
std::optional<Floats> valuesOf(Value x) {
  constexpr size_t kMost = 1 << 17;
  if (auto values = valuesOfDequantized(x))
    return values;
  Operation *op = x.getDefiningOp();
  if (!isa_and_nonnull<AddOp, MaxOp, MinOp>(op))
    return std::nullopt;
  auto left = valuesOf(op->getOperand(0));
  if (!left)
    return std::nullopt;
  std::optional<Floats> right;
  if (auto number = splatOf(op->getOperand(1)))
    right = Floats{static_cast<float>(*number)};
  else
    right = valuesOf(op->getOperand(1));
  if (!right || left->size() * right->size() > kMost)
    return std::nullopt;
  Floats values;
  for (float a : *left)
    for (float b : *right)
      values.push_back(isa<AddOp>(op) ? a + b : isa<MaxOp>(op) ? std::max(a, b) : std::min(a, b));
  llvm::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// A factor near 1 / step that gives with each of `values` the integer that the division gives.
std::optional<float> factorFor(const Floats &values, float step) {
  constexpr int kTries = 3; // on either side
  float guess = 1 / step;
  auto isRight = [&](float factor) {
    return llvm::all_of(values, [&](float value) {
      return std::nearbyint(value * factor) == std::nearbyint(value / step);
    });
  };
  float above = guess, below = guess;
  for (int i = 0; i <= kTries; ++i) {
    if (isRight(above))
      return above;
    if (isRight(below))
      return below;
    above = std::nextafter(above, INFINITY);
    below = std::nextafter(below, 0.0f);
  }
  return std::nullopt;
}

std::optional<float> stepOf(DivOp div) {
  constexpr double kLeast = 1e-30, kMost = 1e30;
  auto number = div && elementOf(div.getResult()).isF32() ? splatOf(div.getY()) : std::nullopt;
  return number && *number >= kLeast && *number <= kMost ? std::optional<float>(*number)
                                                         : std::nullopt;
}

// round(x / s) = round(x * r), where that holds of all values of x
LogicalResult roundOfQuotient(RoundOp op, PatternRewriter &rewriter) {
  auto div = op.getX().getDefiningOp<DivOp>();
  auto step = stepOf(div);
  auto values = step ? valuesOf(div.getX()) : std::nullopt;
  auto factor = values ? factorFor(*values, *step) : std::nullopt;
  if (!factor)
    return failure();
  Value x = div.getX();
  Value product = rewriter.create<MulOp>(div.getLoc(), x, splatLike(rewriter, x, *factor));
  rewriter.replaceOpWithNewOp<RoundOp>(op, product);
  return success();
}

/// x of max(x, 0), or x itself.
Value underRelu(Value x) {
  auto bounded = x.getDefiningOp<MaxOp>();
  auto least = bounded ? splatOf(bounded.getY()) : std::nullopt;
  return least && *least == 0 ? bounded.getX() : x;
}

// round(max(q * s, 0) * r) = round(max(q * (s * r), 0)), where that holds of all q
LogicalResult roundOfRescaled(RoundOp op, PatternRewriter &rewriter) {
  auto outer = op.getX().getDefiningOp<MulOp>();
  auto factor = outer ? splatOf(outer.getY()) : std::nullopt;
  Value x = factor && *factor > 0 ? underRelu(outer.getX()) : Value();
  auto values = x ? valuesOfDequantized(x) : std::nullopt;
  if (!values || !elementOf(x).isF32())
    return failure();
  auto inner = x.getDefiningOp<MulOp>();
  auto scale = inner ? splatOf(inner.getY()) : std::nullopt;
  if (!scale || !(*scale > 0))
    return failure();
  float both = static_cast<float>(*scale) * static_cast<float>(*factor);
  auto others = valuesOfDequantized(x, both);
  for (auto [was, is] : llvm::zip(*values, *others))
    if (std::nearbyint(was * static_cast<float>(*factor)) != std::nearbyint(is))
      return failure();
  Value product =
      rewriter.create<MulOp>(outer.getLoc(), inner.getX(), splatLike(rewriter, x, both));
  if (x != outer.getX())
    product = rewriter.create<MaxOp>(outer.getLoc(), product, splatLike(rewriter, product, 0));
  rewriter.replaceOpWithNewOp<RoundOp>(op, product);
  return success();
}

// max(round(max(x, c)) + z, b) = max(round(x) + z, b), where round(c) + z <= b
LogicalResult boundOfBounded(MaxOp op, PatternRewriter &rewriter) {
  auto least = splatOf(op.getY());
  auto sum = op.getX().getDefiningOp<AddOp>();
  auto zero = sum ? splatOf(sum.getY()) : std::optional<double>(0);
  auto round = (sum ? sum.getX() : op.getX()).getDefiningOp<RoundOp>();
  auto inner = round ? round.getX().getDefiningOp<MaxOp>() : nullptr;
  auto bound = inner ? splatOf(inner.getY()) : std::nullopt;
  if (!least || !zero || !bound || !(std::nearbyint(*bound) + *zero <= *least))
    return failure();
  Value x = rewriter.create<RoundOp>(round.getLoc(), inner.getX());
  if (sum)
    x = rewriter.create<AddOp>(sum.getLoc(), x, sum.getY());
  rewriter.replaceOpWithNewOp<MaxOp>(op, x, op.getY());
  return success();
}

} // namespace

void addStepRules(RewritePatternSet &patterns) {
  patterns.add(roundOfQuotient).add(roundOfRescaled).add(boundOfBounded);
}

} // namespace heddle::simplify
