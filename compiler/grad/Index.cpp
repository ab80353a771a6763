// Index: derivatives of gathers, which are scatters, and of scatters, which are gathers.

#include "compiler/grad/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

static void gatherRule(Flow &f) {
  f.give(0, f.ungather(f.dy(), f.x(1), f.as<GatherOp>().getAxis(), dimsOf(f.x())));
}

static void gatherElementsRule(Flow &f) {
  f.give(0, f.make<ScatterElementsOp>(f.zeros(f.x()), f.x(1), f.dy(),
                                      f.as<GatherElementsOp>().getAxis(), "add"));
}

/// Tuples that begin with the place in each of the batch dimensions.
static Value wholeTuples(Flow &f, Value indices, int64_t batchDims) {
  if (batchDims == 0)
    return indices;
  DimVector dims = dimsOf(indices);
  dims.back() = Dim(1);
  SmallVector<Value> parts;
  for (int64_t axis = 0; axis < batchDims; ++axis)
    parts.push_back(f.cast(f.iota(dims, axis), elementOf(indices)));
  parts.push_back(indices);
  return f.make<ConcatOp>(parts, static_cast<uint64_t>(rankOf(indices) - 1));
}

static void gatherNdRule(Flow &f) {
  Value tuples = wholeTuples(f, f.x(1), f.as<GatherNdOp>().getBatchDims());
  f.give(0, f.make<ScatterNdOp>(f.zeros(f.x()), tuples, f.dy(), "add"));
}

namespace {
/// The two kinds of scatter, alike in all but how indices name places.
class Scatter {
public:
  explicit Scatter(Flow &f) : f(f) {
    if (auto op = dyn_cast<ScatterElementsOp>(f.op)) {
      axis = op.getAxis();
      reduction = op.getReduction();
    } else {
      reduction = f.as<ScatterNdOp>().getReduction();
    }
  }

  Value onto(Value x, Value updates, StringRef how) {
    return axis ? f.make<ScatterElementsOp>(x, f.x(1), updates, *axis, how)
                : f.make<ScatterNdOp>(x, f.x(1), updates, how);
  }
  /// Picks in the shape of the updates, whose sizes may have names of their own.
  Value from(Value x) {
    Value picked = axis ? f.make<GatherElementsOp>(x, f.x(1), *axis)
                        : f.make<GatherNdOp>(x, f.x(1), uint64_t(0));
    return f.reshape(picked, dimsOf(f.x(2)));
  }

  void rule() {
    if (reduction == "add") {
      f.give(0, f.dy());
      if (f.wants(2))
        f.give(2, from(f.dy()));
    } else if (reduction == "none") {
      if (f.wants(0))
        f.give(0, onto(f.dy(), f.zeros(f.x(2)), "none"));
      if (f.wants(2))
        f.give(2, f.mul(from(f.dy()), lasts()));
    } else if (reduction == "mul") {
      productRule();
    } else {
      extremeRule();
    }
  }

private:
  /// 1 for the updates that stay, 0 for those that a later one overwrites.
  Value lasts() {
    Value numbers = f.numbering(dimsOf(f.x(2)));
    Value places = f.full(dimsOf(f.x(0)), elementOf(numbers), -1);
    Value stay = f.compare<EqualOp>(from(onto(places, numbers, "none")), numbers);
    return f.cast(stay, elementOf(f.dy()));
  }

  void productRule() {
    Value x = f.x(0), updates = f.x(2);
    Value product = onto(f.withoutZeros(x), f.withoutZeros(updates), "mul");
    Value zeros = onto(f.whereZero(x), f.whereZero(updates), "add");
    if (f.wants(0))
      f.give(0, f.mul(f.dy(), f.productOfOthers(x, product, zeros)));
    if (f.wants(2))
      f.give(2, f.mul(from(f.dy()), f.productOfOthers(updates, from(product), from(zeros))));
  }

  /// Shares an element's gradient evenly among all that equal it.
  void extremeRule() {
    Type element = elementOf(f.dy());
    Value isOld = f.cast(f.compare<EqualOp>(f.x(0), f.y()), element);
    Value isNew = f.cast(f.compare<EqualOp>(f.x(2), from(f.y())), element);
    Value share = f.div(f.dy(), onto(isOld, isNew, "add"));
    if (f.wants(0))
      f.give(0, f.mul(share, isOld));
    if (f.wants(2))
      f.give(2, f.mul(from(share), isNew));
  }

  Flow &f;
  std::optional<uint64_t> axis;
  StringRef reduction;
};
} // namespace

static void scatterRule(Flow &f) { Scatter(f).rule(); }

Rows indexRules() {
  static const Row rows[] = {
      {GatherOp::getOperationName(), gatherRule},
      {GatherElementsOp::getOperationName(), gatherElementsRule},
      {GatherNdOp::getOperationName(), gatherNdRule},
      {ScatterElementsOp::getOperationName(), scatterRule},
      {ScatterNdOp::getOperationName(), scatterRule},
  };
  return rows;
}

} // namespace heddle::grad
