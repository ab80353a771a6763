// Extremes: the place of the best element of a row is the first place of what equals it, so two
// folds along lanes do for what else each lane would walk alone.

#include "compiler/graph/cost/Thresholds.h"
#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

namespace {
/// argmax(x) = min over i of (x[i] == max(x) or x[i] is NaN ? i : none), along the last dimension;
/// argmin(x) = min over i of (x[i] == min(x without NaN) ? i : none), 0 where all are NaN.
template <typename Op, typename Best> struct PlaceOfBest : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  static constexpr bool isMax = std::is_same_v<Op, ArgMaxOp>;

  /// Where x is as good as anything in its row.
  Value isBest(OpBuilder &b, Location loc, Value x, int64_t axis) const {
    DimVector dims = dimsOf(x);
    Value isNan = isFloat(x) ? b.create<IsNanOp>(loc, x).getResult() : Value(), numbers = x;
    if (isNan && !isMax)
      numbers = b.create<SelectOp>(loc, isNan, Build(b, loc).full(dims, elementOf(x), INFINITY), x);
    Value best = b.create<Best>(loc, numbers, ArrayRef<int64_t>(axis), true);
    Value isEqual = b.create<EqualOp>(loc, x, Build(b, loc).broadcast(best, dims));
    if (isNan && isMax)
      return b.create<OrOp>(loc, isEqual.getType(), isEqual, isNan);
    return isEqual;
  }

  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    Value x = op.getX();
    DimVector dims = dimsOf(x);
    int64_t axis = rankOf(x) - 1;
    auto size = dims[axis].constant();
    bool canBeNone = isFloat(x) && !isMax, isLast = op.getLast();
    if (static_cast<int64_t>(op.getAxis()) != axis ||
        (size && *size < cost::thresholdAt(op, cost::kArgRow)) || (canBeNone && isLast && !size))
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
    if (canBeNone) {
      auto all = [&](double number) { return Build(b, loc).full(dimsOf(found), index, number); };
      Value isNone = b.create<EqualOp>(loc, found, all(none));
      found = b.create<SelectOp>(loc, isNone, all(isLast ? *size - 1 : 0), found);
    }
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
