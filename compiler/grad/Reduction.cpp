// Reduction: derivatives of reductions over dimensions.

#include "compiler/grad/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

template <typename Op> static void sumRule(Flow &f) {
  f.give(0, f.spread(f.dy(), f.as<Op>().getAxes(), dimsOf(f.x())));
}

static void prodRule(Flow &f) {
  ArrayRef<int64_t> axes = f.as<ReduceProdOp>().getAxes();
  auto whole = [&](Value value) { return f.spread(value, axes, dimsOf(f.x())); };
  Value zeros = whole(f.sum(f.whereZero(f.x()), axes));
  Value factors = f.withoutZeros(f.x());
  Value product = whole(f.make<ReduceProdOp>(factors, axes, /*keep_dims=*/false));
  f.give(0, f.mul(whole(f.dy()), f.productOfOthers(f.x(), product, zeros)));
}

template <typename Op> static void extremeRule(Flow &f) {
  ArrayRef<int64_t> axes = f.as<Op>().getAxes();
  DimVector dims = dimsOf(f.x());
  Value isBest = f.compare<EqualOp>(f.x(), f.spread(f.y(), axes, dims));
  Value mask = f.cast(isBest, elementOf(f.x()));
  Value count = f.spread(f.sum(mask, axes), axes, dims);
  f.give(0, f.mul(f.spread(f.dy(), axes, dims), f.div(mask, count)));
}

Rows reductionRules() {
  static const Row rows[] = {
      {ReduceSumOp::getOperationName(), sumRule<ReduceSumOp>},
      {ReduceProdOp::getOperationName(), prodRule},
      {ReduceMaxOp::getOperationName(), extremeRule<ReduceMaxOp>},
      {ReduceMinOp::getOperationName(), extremeRule<ReduceMinOp>},
      {ArgMaxOp::getOperationName(), nullptr},
      {ArgMinOp::getOperationName(), nullptr},
  };
  return rows;
}

} // namespace heddle::grad
