// Taps: windows without the taps that lie in the border wherever the window is. Wide dilations over
// small images have many (the atrous pyramids of Chen et al., "Rethinking Atrous Convolution",
// 2017, section 3.3).

#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

/// Taps at the begin and the end of a window's dimension that never meet the image.
struct Idle {
  int64_t first, last;
};

Idle idleTaps(ConvOp op, size_t d) {
  size_t axis = d + (op.getChannelsLast() ? 1 : 2);
  auto size = dimsOf(op.getX())[axis].constant();
  auto places = dimsOf(op.getResult())[axis].constant();
  auto taps = dimsOf(op.getW())[d + 2].constant();
  if (!size || !places || !taps)
    return {0, 0};
  int64_t low = op.getLow()[d], high = op.getHigh()[d], dilation = op.getDilations()[d];
  Idle idle{0, 0};
  auto leaves = [&] { return *taps - idle.first - idle.last > 1; };
  while (leaves() && (idle.first + 1) * dilation <= low &&
         (*places - 1) * op.getStrides()[d] - low + idle.first * dilation < 0)
    ++idle.first;
  while (leaves() && (idle.last + 1) * dilation <= high &&
         (*taps - 1 - idle.last) * dilation - low >= *size)
    ++idle.last;
  return idle;
}

// conv(x, w) = conv(x, w without idle taps), with borders that are as much smaller
LogicalResult convOfIdleTaps(ConvOp op, PatternRewriter &rewriter) {
  if (!isConstant(op.getW()))
    return failure();
  DimVector sizes = dimsOf(op.getW()), starts(sizes.size(), Dim(0));
  SmallVector<int64_t> low(op.getLow()), high(op.getHigh()), steps(sizes.size(), 1);
  bool hasAny = false;
  for (size_t d = 0; d + 2 < sizes.size(); ++d) {
    auto [first, last] = idleTaps(op, d);
    starts[d + 2] = Dim(first);
    sizes[d + 2] = sizes[d + 2] - Dim(first + last);
    low[d] -= first * op.getDilations()[d];
    high[d] -= last * op.getDilations()[d];
    hasAny |= first + last > 0;
  }
  if (!hasAny)
    return failure();
  Value w = rewriter.create<SliceOp>(
      op.getLoc(), tensorOf(op.getContext(), sizes, elementOf(op.getW())), op.getW(),
      dimsAttr(op.getContext(), starts), rewriter.getDenseI64ArrayAttr(steps));
  rewriter.modifyOpInPlace(op, [&] {
    op.getWMutable().assign(w);
    op.setLow(low);
    op.setHigh(high);
  });
  return success();
}

} // namespace

void addTapRules(RewritePatternSet &patterns) { patterns.add(convOfIdleTaps); }

} // namespace heddle::simplify
