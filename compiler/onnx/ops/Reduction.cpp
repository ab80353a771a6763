// Reduction: reductions over axes, and running sums.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/RunTimeAxes.h"
#include "compiler/onnx/ops/Walk.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

using Fold = Value (*)(Emitter &, Value, ArrayRef<int64_t>, bool);

template <typename Op> static Value plain(Emitter &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  return e.reduce<Op>(x, axes, keep);
}
static Value meanOf(Emitter &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  return e.mean(x, axes, keep);
}
static Value l1(Emitter &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  return e.reduce<ReduceSumOp>(e.unary<AbsOp>(x), axes, keep);
}
static Value sumSquare(Emitter &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  return e.reduce<ReduceSumOp>(e.mul(x, x), axes, keep);
}
/// Floats of 16 bits are folded in f32: a sum or square leaves their range where the result does
/// not.
template <Value (*fold)(Emitter &, Value, ArrayRef<int64_t>, bool)>
static Value inWide(Emitter &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  Type element = elementOf(x);
  return narrowed(e, fold(e, e.cast(x, wideType(e, element)), axes, keep), element);
}
/// A root or logarithm of integers is that of f64, rounded toward zero.
template <Value (*fold)(Emitter &, Value, ArrayRef<int64_t>, bool)>
static Value asFloat(Emitter &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  Type element = elementOf(x);
  if (!isa<IntegerType>(element))
    return inWide<fold>(e, x, axes, keep);
  return e.cast(fold(e, e.cast(x, e.builder.getF64Type()), axes, keep), element);
}
static Value l2(Emitter &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  return e.unary<SqrtOp>(sumSquare(e, x, axes, keep));
}
static Value logSum(Emitter &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  return e.unary<LogOp>(e.reduce<ReduceSumOp>(x, axes, keep));
}
/// Shifted by the largest, if that is finite, so that no power overflows.
static Value logSumExp(Emitter &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  Value largest = e.reduce<ReduceMaxOp>(x, axes), zero = e.scalar(elementOf(x), 0);
  Value isInfinite = e.infer<IsInfOp>(largest);
  largest = e.select(isInfinite, zero, largest);
  Value sum = e.reduce<ReduceSumOp>(e.unary<ExpOp>(e.sub(x, largest)), axes);
  Value result = e.add(e.unary<LogOp>(sum), largest);
  return keep ? result : e.squeeze(result, axes);
}

/// The chosen axes come last and become one, which is reduced.
static Value foldRunTimeAxes(Node &n, Fold fold) {
  Value x = n.in(0), ones = n.integerScalar(n.i64(), 1), zero = n.integerScalar(n.i64(), 0);
  int64_t rank = rankOf(x);
  RunTimeAxes axes(n, n.in(1), rank);
  axes.whenEmpty(!n.getInt("noop_with_empty_axes", 0));
  Value sizes = axes.sortedSizes(x), moved = axes.toEnd(x);
  Value last = n.reduce<ReduceSumOp>(axes.mask(), {0}, false);
  Value isKept =
      n.compare<LessOp>(n.add(n.iota(Dim(rank), 0, n.i64()), last), n.integerScalar(n.i64(), rank));
  Value kept = n.reduce<ReduceProdOp>(n.select(isKept, sizes, ones), {0}, false);
  Value reduced = n.reduce<ReduceProdOp>(n.select(isKept, ones, sizes), {0}, false);
  Dim rows = n.bindSizes(kept, "size")[0], columns = n.bindSizes(reduced, "size")[0];
  Value result = fold(n, n.reshape(moved, {rows, columns}), {1}, false);
  if (n.getInt("keepdims", 1)) {
    Value isFree = n.compare<EqualOp>(axes.mask(), zero);
    Value shape = n.select(isFree, n.sizes(dimsOf(x)), ones);
    return n.reshape(result, n.bindSizes(shape, "size"));
  }
  auto count = elementCount(dimsOf(n.in(1))).constant();
  auto left = n.declaredRank(0);
  if (!left && count && *count > 0)
    left = rank - *count;
  if (!left || *left < 0 || *left > rank)
    refuse("the rank of the result is not known when the model is compiled",
           "declare the shape of the output, give 'axes' a constant size, or keep the dimensions");
  Value most = n.integerScalar(n.i64(), rank - *left);
  n.requireNotNegative(n.sub(most, last),
                       "%lld axes are reduced, but the declared rank of the output is for %lld",
                       n.concat({n.unsqueeze(last, {0}), n.unsqueeze(most, {0})}, 0));
  return n.reshape(result, n.bindSizes(n.sliceAlong(sizes, 0, Dim(0), Dim(*left)), "size"));
}

template <Fold fold> static void reduction(Node &n) {
  Value x = n.in(0);
  if (n.isLate(1) && rankOf(x) > 0 && !elementCount(dimsOf(n.in(1))).isConstant(0))
    return n.set(foldRunTimeAxes(n, fold));
  auto axes = n.intsFrom(1, "axes");
  if (!axes || axes->empty()) {
    if (n.getInt("noop_with_empty_axes", 0))
      return n.set(fold(n, x, {}, true)); // applies the reduction's map to single elements
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
  }
  Ints sorted = n.axes(*axes, rankOf(x));
  llvm::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  n.set(fold(n, x, sorted, n.getInt("keepdims", 1)));
}

template <typename Op> static void argument(Node &n) {
  Value x = n.in(0);
  int64_t axis = n.axis(n.getInt("axis", 0), rankOf(x));
  Dim size = dimsOf(x)[axis];
  if (size.isConstant(0))
    refuse("axis " + Twine(axis) + " has no elements, so none is the largest or the smallest");
  if (!size.constant())
    n.requireNotNegative(n.sub(n.size(size), n.integerScalar(n.i64(), 1)),
                         "the axis has no elements, so none is the largest or the smallest");
  n.set(n.infer<Op>(x, {n.integer("axis", axis), n.flag("keep_dims", n.getInt("keepdims", 1)),
                        n.flag("last", n.getInt("select_last_index", 0))}));
}

static void importCumSum(Node &n) {
  Value x = n.in(0);
  n.set(onAxis(n, n.in(1), rankOf(x), [&](int64_t axis) {
    return n.infer<CumsumOp>(x, {n.integer("axis", axis),
                                 n.flag("exclusive", n.getInt("exclusive", 0)),
                                 n.flag("reverse", n.getInt("reverse", 0))});
  }));
}

OpRows reductionRows() {
  static const OpRow rows[] = {
      {"ReduceSum", "", 1, 27, reduction<plain<ReduceSumOp>>},
      {"ReduceProd", "", 1, 27, reduction<plain<ReduceProdOp>>},
      {"ReduceMax", "", 1, 27, reduction<plain<ReduceMaxOp>>},
      {"ReduceMin", "", 1, 27, reduction<plain<ReduceMinOp>>},
      {"ReduceMean", "", 1, 27, reduction<meanOf>},
      {"ReduceL1", "", 1, 27, reduction<inWide<l1>>},
      {"ReduceL2", "", 1, 27, reduction<asFloat<l2>>},
      {"ReduceSumSquare", "", 1, 27, reduction<inWide<sumSquare>>},
      {"ReduceLogSum", "", 1, 27, reduction<asFloat<logSum>>},
      {"ReduceLogSumExp", "", 1, 27, reduction<asFloat<logSumExp>>},
      {"ArgMax", "", 1, 27, argument<ArgMaxOp>},
      {"ArgMin", "", 1, 27, argument<ArgMinOp>},
      {"CumSum", "", 11, 27, importCumSum},
  };
  return rows;
}

} // namespace heddle::onnx
