// Extremes: the place of the best element of a row is the first place of an equal element, so two
// reductions along lanes replace a walk in each lane.

#include "compiler/estimate/Thresholds.h"
#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

namespace {
/// argmax(x) = min over i of (x[i] == max(x) or x[i] is NaN ? i : none), along the last dimension;
/// argmin as well. If there is a NaN, max(x) is one, so that no number equals it.
template <typename Op, typename Best> struct PlaceOfBest : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  /// Mask of the elements of x that equal the best of their row, or are NaN.
  Value isBest(OpBuilder &b, Location loc, Value x, int64_t axis) const {
    Value best = b.create<Best>(loc, x, ArrayRef<int64_t>(axis), true);
    Value isEqual = b.create<EqualOp>(loc, x, Build(b, loc).broadcast(best, dimsOf(x)));
    if (!isFloat(x))
      return isEqual;
    return b.create<OrOp>(loc, isEqual.getType(), isEqual, b.create<IsNanOp>(loc, x));
  }

  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    Value x = op.getX();
    DimVector dims = dimsOf(x);
    int64_t axis = rankOf(x) - 1;
    auto size = dims[axis].constant();
    bool isLast = op.getLast();
    if (static_cast<int64_t>(op.getAxis()) != axis ||
        (size && *size < estimate::thresholdAt(op, estimate::kArgRow)))
      return failure();
    Location loc = op.getLoc();
    bool isNarrow = size && *size < INT32_MAX;
    Type index = b.getIntegerType(isNarrow ? 32 : 64);
    double none = isLast ? -1 : isNarrow ? INT32_MAX : 0x1p62;
    Value place = b.create<IotaOp>(loc, tensorOf(b.getContext(), dims, index), axis);
    Value candidate = b.create<SelectOp>(loc, isBest(b, loc, x, axis), place,
                                         Build(b, loc).full(dims, index, none));
    ArrayRef<int64_t> axes(axis);
    Value found = isLast
                      ? b.create<ReduceMaxOp>(loc, candidate, axes, op.getKeepDims()).getResult()
                      : b.create<ReduceMinOp>(loc, candidate, axes, op.getKeepDims()).getResult();
    b.replaceOpWithNewOp<CastOp>(op, op.getType(), found);
    return success();
  }
};
} // namespace

void addExtremeRules(RewritePatternSet &patterns) {
  patterns.add<PlaceOfBest<ArgMaxOp, ReduceMaxOp>, PlaceOfBest<ArgMinOp, ReduceMinOp>>(
      patterns.getContext());
}

} // namespace heddle::simplify
