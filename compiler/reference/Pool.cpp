// Pool: the largest or the average element of each window, and the way back.

#include "compiler/reference/Families.h"

using namespace mlir;

namespace heddle::reference {

using namespace graph;

/// Position in x of an element of the window of one output position.
template <typename Op>
static SmallVector<int64_t> placeOf(Op op, ArrayRef<int64_t> position, ArrayRef<int64_t> element) {
  SmallVector<int64_t> place;
  for (size_t i = 0; i < position.size(); ++i)
    place.push_back(position[i] * op.getStrides()[i] - op.getLow()[i] +
                    element[i] * op.getDilations()[i]);
  return place;
}

namespace {
struct Windows {
  std::vector<std::vector<int64_t>> offsets; // offsets of the elements inside x, for each position
  std::vector<int64_t> divisors;
};
} // namespace

static Windows windowsOf(PoolOp op, ArrayRef<int64_t> from, ArrayRef<int64_t> strides,
                         ArrayRef<int64_t> to) {
  Windows windows;
  forEachIndex(to, [&](ArrayRef<int64_t> position, int64_t) {
    std::vector<int64_t> offsets;
    int64_t divisor = 0;
    forEachIndex(op.getWindow(), [&](ArrayRef<int64_t> element, int64_t) {
      bool isInside = true, isInPadding = true;
      int64_t offset = 0;
      for (auto [i, place] : llvm::enumerate(placeOf(op, position, element))) {
        isInside &= place >= 0 && place < from[i];
        isInPadding &= place >= -op.getLow()[i] && place < from[i] + op.getHigh()[i];
        offset += place * strides[i];
      }
      if (isInside)
        offsets.push_back(offset);
      divisor += op.getCountPadding() ? isInPadding : isInside;
    });
    windows.offsets.push_back(std::move(offsets));
    windows.divisors.push_back(divisor);
  });
  return windows;
}

template <typename T> static T average(T sum, int64_t divisor) {
  return divisor == 0 ? T(0) : static_cast<T>(sum / static_cast<T>(divisor));
}

Results compute(PoolOp op, const Call &call) {
  const Tensor &x = call[0];
  auto shape = call.shapeOfResult();
  if (!shape)
    return shape.takeError();
  for (size_t i = 0; i < op.getWindow().size(); ++i)
    if (op.getStrides()[i] < 1 || op.getDilations()[i] < 1 || op.getWindow()[i] < 1)
      return call.error("windows, strides and dilations must be at least 1");
  size_t channel = op.getChannelsLast() ? x.rank() - 1 : 1;
  if ((*shape)[0] != x.shape[0] || (*shape)[channel] != x.shape[channel])
    return call.error("a result of shape " + textOf(*shape) + " does not suit x of shape " +
                      textOf(x.shape));
  auto result = call.allocate(*shape);
  if (!result)
    return result.takeError();
  SmallVector<int64_t> from, strides, to, toStrides;
  SmallVector<int64_t> ofX = stridesOf(x.shape), ofResult = stridesOf(*shape);
  for (size_t i = 1; i < shape->size(); ++i)
    if (i != channel) {
      from.push_back(x.shape[i]);
      strides.push_back(ofX[i]);
      to.push_back((*shape)[i]);
      toStrides.push_back(ofResult[i]);
    }
  Windows windows = windowsOf(op, from, strides, to);
  bool isMax = op.getKind() == "max";
  withNumber(x.element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values = load<T>(x), results(result->count());
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t c = 0; c < x.shape[channel]; ++c) {
        const T *base = values.data() + n * ofX[0] + c * ofX[channel];
        forEachIndex(to, [&](ArrayRef<int64_t> position, int64_t number) {
          T reduced = isMax ? lowestOf<T>(x.element) : T(0);
          for (int64_t offset : windows.offsets[number])
            reduced = isMax ? larger(reduced, base[offset]) : plus(reduced, base[offset]);
          int64_t place = n * ofResult[0] + c * ofResult[channel];
          for (auto [i, stride] : llvm::zip(position, toStrides))
            place += i * stride;
          results[place] = isMax ? reduced : average(reduced, windows.divisors[number]);
        });
      }
    store<T>(*result, results);
    return 0;
  });
  return single(*result);
}

/// Every element of each window, with the position of the window: visit(place in the image, place
/// of the window), both in elements.
static void forEachMember(UnpoolOp op, ArrayRef<int64_t> image, ArrayRef<int64_t> share,
                          llvm::function_ref<void(int64_t, int64_t)> visit) {
  SmallVector<int64_t> ofImage = stridesOf(image), ofShare = stridesOf(share);
  size_t first = op.getChannelsLast() ? 1 : 2,
         channel = op.getChannelsLast() ? image.size() - 1 : 1;
  size_t spatial = image.size() - 2;
  auto at = [&](int64_t n, int64_t c, ArrayRef<int64_t> position, ArrayRef<int64_t> element) {
    int64_t member = n * ofImage[0] + c * ofImage[channel];
    int64_t window = n * ofShare[0] + c * ofShare[channel];
    for (auto [i, place] : llvm::enumerate(placeOf(op, position, element))) {
      if (place < 0 || place >= image[first + i])
        return;
      member += place * ofImage[first + i];
      window += position[i] * ofShare[first + i];
    }
    visit(member, window);
  };
  for (int64_t n = 0; n < image[0]; ++n)
    for (int64_t c = 0; c < image[channel]; ++c)
      forEachIndex(share.slice(first, spatial), [&](ArrayRef<int64_t> position, int64_t) {
        forEachIndex(op.getWindow(),
                     [&](ArrayRef<int64_t> element, int64_t) { at(n, c, position, element); });
      });
}

Results compute(UnpoolOp op, const Call &call) {
  const Tensor &share = call[0];
  auto shape = call.shapeOfResult();
  if (!shape)
    return shape.takeError();
  size_t channel = op.getChannelsLast() ? share.rank() - 1 : 1;
  bool hasImages = call.operands.size() == 3;
  if ((*shape)[0] != share.shape[0] || (*shape)[channel] != share.shape[channel] ||
      (hasImages && (call[1].shape != *shape || call[2].shape != share.shape)))
    return call.error("a result of shape " + textOf(*shape) + " does not suit shares of shape " +
                      textOf(share.shape));
  auto result = call.allocate(*shape);
  if (!result)
    return result.takeError();
  withNumber(share.element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> given = load<T>(share), results(result->count()), x, y;
    if (hasImages) {
      x = load<T>(call[1]);
      y = load<T>(call[2]);
    }
    forEachMember(op, *shape, share.shape, [&](int64_t member, int64_t window) {
      if (!hasImages || x[member] == y[window])
        results[member] = plus(results[member], given[window]);
    });
    store<T>(*result, results);
    return 0;
  });
  return single(*result);
}

} // namespace heddle::reference
