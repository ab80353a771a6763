// Reduction: reductions, running sums, places of extremes, and sorting.

#include "compiler/reference/Families.h"

#include <numeric>

using namespace mlir;

namespace heddle::reference {

using namespace graph;

/// Shape without (or with 1 at) the axes, and the distance of each dimension of x in the result.
static SmallVector<int64_t> reducedShape(const Tensor &x, ArrayRef<int64_t> axes, bool keepDims,
                                         SmallVectorImpl<int64_t> &strides) {
  SmallVector<int64_t> kept(x.shape), shape;
  for (int64_t axis : axes)
    kept[axis] = 1;
  strides = stridesOf(kept);
  for (int64_t axis : axes)
    strides[axis] = 0;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (keepDims || !llvm::is_contained(axes, i))
      shape.push_back(kept[i]);
  return shape;
}

/// `combine` is a generic function of two numbers; `start` makes the reduction of nothing.
template <typename Op, typename Start, typename Combine>
static Results fold(Op op, const Call &call, Start start, Combine combine) {
  const Tensor &x = call[0];
  SmallVector<int64_t> strides;
  auto result = call.allocate(reducedShape(x, op.getAxes(), op.getKeepDims(), strides));
  if (!result)
    return result.takeError();
  withNumber(x.element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values = load<T>(x);
    std::vector<T> reduced(result->count(), start(zero));
    forEachIndex(x.shape, [&](ArrayRef<int64_t> index, int64_t number) {
      int64_t place = 0;
      for (auto [i, stride] : llvm::zip(index, strides))
        place += i * stride;
      reduced[place] = combine(reduced[place], values[number]);
    });
    store<T>(*result, reduced);
    return 0;
  });
  return single(*result);
}

Results compute(ReduceSumOp op, const Call &call) {
  return fold(op, call, [](auto zero) { return zero; }, [](auto x, auto y) { return plus(x, y); });
}
Results compute(ReduceProdOp op, const Call &call) {
  return fold(
      op, call, [](auto zero) { return decltype(zero)(1); },
      [](auto x, auto y) { return times(x, y); });
}
Results compute(ReduceMaxOp op, const Call &call) {
  return fold(
      op, call, [&](auto zero) { return lowestOf<decltype(zero)>(call[0].element); },
      [](auto x, auto y) { return larger(x, y); });
}
Results compute(ReduceMinOp op, const Call &call) {
  return fold(
      op, call, [&](auto zero) { return highestOf<decltype(zero)>(call[0].element); },
      [](auto x, auto y) { return smaller(x, y); });
}

/// x as [outer, size, inner] around an axis.
namespace {
struct Around {
  Around(const Tensor &x, int64_t axis)
      : outer(countOf(ArrayRef<int64_t>(x.shape).take_front(axis))), size(x.shape[axis]),
        inner(countOf(ArrayRef<int64_t>(x.shape).drop_front(axis + 1))) {}
  int64_t at(int64_t o, int64_t i, int64_t n) const { return (o * size + i) * inner + n; }
  int64_t outer, size, inner;
};
} // namespace

/// Whether x is more extreme than y, as NaN is than all numbers.
template <typename T> static bool isMoreExtreme(T x, T y, bool largest) {
  if (x != x || y != y)
    return x != x && y == y;
  return largest ? x > y : x < y;
}

/// Whether x goes before y in descending (ascending) order; NaN counts as larger than all.
template <typename T> static bool isBefore(T x, T y, bool largest) {
  return largest ? isMoreExtreme(x, y, true) : isMoreExtreme(y, x, true);
}

template <typename Op> static Results placeOfExtreme(Op op, const Call &call, bool largest) {
  const Tensor &x = call[0];
  SmallVector<int64_t> strides;
  int64_t axis = op.getAxis();
  auto result = call.allocate(reducedShape(x, {axis}, op.getKeepDims(), strides));
  if (!result)
    return result.takeError();
  Around around(x, axis);
  if (around.size == 0 && result->count() > 0)
    return call.error("axis " + Twine(axis) + " is empty, so there is no extreme");
  withNumber(x.element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values = load<T>(x);
    std::vector<int64_t> places;
    for (int64_t o = 0; o < around.outer; ++o)
      for (int64_t n = 0; n < around.inner && around.size > 0; ++n) {
        int64_t best = 0;
        for (int64_t i = 1; i < around.size; ++i) {
          T candidate = values[around.at(o, i, n)], leader = values[around.at(o, best, n)];
          if (isMoreExtreme(candidate, leader, largest) ||
              (op.getLast() && !isMoreExtreme(leader, candidate, largest)))
            best = i;
        }
        places.push_back(best);
      }
    store<int64_t>(*result, places);
    return 0;
  });
  return single(*result);
}

Results compute(ArgMaxOp op, const Call &call) { return placeOfExtreme(op, call, true); }
Results compute(ArgMinOp op, const Call &call) { return placeOfExtreme(op, call, false); }

Results compute(CumsumOp op, const Call &call) {
  const Tensor &x = call[0];
  if (static_cast<int64_t>(op.getAxis()) < 0 || static_cast<int64_t>(op.getAxis()) >= x.rank())
    return call.error("axis " + Twine(op.getAxis()) + " is outside of rank " + Twine(x.rank()));
  auto result = call.allocate(x.shape);
  if (!result)
    return result.takeError();
  Around around(x, op.getAxis());
  withNumber(x.element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values = load<T>(x), sums(values.size());
    for (int64_t o = 0; o < around.outer; ++o)
      for (int64_t n = 0; n < around.inner; ++n) {
        T running = T(0);
        for (int64_t i = 0; i < around.size; ++i) {
          int64_t place = around.at(o, op.getReverse() ? around.size - 1 - i : i, n);
          T next = plus(running, values[place]);
          sums[place] = op.getExclusive() ? running : next;
          running = next;
        }
      }
    store<T>(*result, sums);
    return 0;
  });
  return single(*result);
}

Results compute(TopkOp op, const Call &call) {
  const Tensor &x = call[0];
  int64_t axis = op.getAxis();
  auto shape = call.shapeOfResult();
  if (!shape)
    return shape.takeError();
  if (axis < 0 || axis >= x.rank() || shape->size() != x.shape.size())
    return call.error("axis " + Twine(axis) + " is outside of rank " + Twine(x.rank()));
  int64_t count = (*shape)[axis];
  SmallVector<int64_t> needed(x.shape);
  needed[axis] = count;
  if (count > x.shape[axis] || needed != *shape)
    return call.error("a result of shape " + textOf(*shape) + " cannot come from x of shape " +
                      textOf(x.shape));
  auto values = call.allocate(*shape, 0), indices = call.allocate(*shape, 1);
  if (!values || !indices)
    return llvm::joinErrors(values.takeError(), indices.takeError());
  Around from(x, axis), to(*values, axis);
  withNumber(x.element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> all = load<T>(x), chosen(values->count());
    std::vector<int64_t> places(values->count()), order(from.size);
    for (int64_t o = 0; o < from.outer; ++o)
      for (int64_t n = 0; n < from.inner; ++n) {
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          T x = all[from.at(o, a, n)], y = all[from.at(o, b, n)];
          bool largest = op.getLargest();
          return isBefore(x, y, largest) || (!isBefore(y, x, largest) && a < b);
        });
        for (int64_t i = 0; i < count; ++i) {
          places[to.at(o, i, n)] = order[i];
          chosen[to.at(o, i, n)] = all[from.at(o, order[i], n)];
        }
      }
    store<T>(*values, chosen);
    store<int64_t>(*indices, places);
    return 0;
  });
  return Tensors{*values, *indices};
}

} // namespace heddle::reference
