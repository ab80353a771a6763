// Convolution: conv as a product of the filters with the windows laid out as columns, its
// transpose, and the gradient of its filters.

#include "compiler/reference/Families.h"

using namespace mlir;

namespace heddle::reference {

using namespace graph;

namespace {
/// Sizes and distances of [n, c, spatial...], or of [n, spatial..., c].
struct Layout {
  Layout(ArrayRef<int64_t> shape, bool channelsLast) {
    SmallVector<int64_t> strides = stridesOf(shape);
    size_t channel = channelsLast ? shape.size() - 1 : 1;
    batches = shape[0];
    batchStride = strides[0];
    channels = shape[channel];
    channelStride = strides[channel];
    for (size_t i = 1; i < shape.size(); ++i)
      if (i != channel) {
        spatial.push_back(shape[i]);
        spatialStrides.push_back(strides[i]);
      }
  }
  /// Distance of a spatial position from its channel's begin; -1 outside.
  int64_t offsetOf(ArrayRef<int64_t> position) const {
    int64_t offset = 0;
    for (size_t i = 0; i < position.size(); ++i) {
      if (position[i] < 0 || position[i] >= spatial[i])
        return -1;
      offset += position[i] * spatialStrides[i];
    }
    return offset;
  }

  int64_t batches, batchStride, channels, channelStride;
  SmallVector<int64_t> spatial, spatialStrides;
};

/// Walk common to conv and conv_transpose. In conv, `inner` is x and `outer` the result; the
/// transpose goes the other way: place in inner = place in outer * stride - low + window *
/// dilation.
struct Walk {
  ArrayRef<int64_t> strides, dilations, low, window;

  /// offsets[w * positions + p]: where in `inner` window element w of position p lies, or -1.
  std::vector<int64_t> innerOffsets(const Layout &inner, ArrayRef<int64_t> outerSpatial) const {
    std::vector<int64_t> offsets;
    offsets.reserve(countOf(window) * countOf(outerSpatial));
    SmallVector<int64_t> place(window.size());
    forEachIndex(window, [&](ArrayRef<int64_t> element, int64_t) {
      forEachIndex(outerSpatial, [&](ArrayRef<int64_t> position, int64_t) {
        for (size_t i = 0; i < place.size(); ++i)
          place[i] = position[i] * strides[i] - low[i] + element[i] * dilations[i];
        offsets.push_back(inner.offsetOf(place));
      });
    });
    return offsets;
  }
};
} // namespace

static SmallVector<int64_t> shapeFrom(int64_t batches, int64_t channels, ArrayRef<int64_t> spatial,
                                      bool channelsLast) {
  SmallVector<int64_t> shape{batches};
  if (!channelsLast)
    shape.push_back(channels);
  shape.append(spatial.begin(), spatial.end());
  if (channelsLast)
    shape.push_back(channels);
  return shape;
}

static llvm::Error checkWalk(const Call &call, const Walk &walk, int64_t groups) {
  for (size_t i = 0; i < walk.strides.size(); ++i)
    if (walk.strides[i] < 1 || walk.dilations[i] < 1)
      return call.error("strides and dilations must be at least 1");
  if (groups < 1)
    return call.error("groups must be at least 1");
  return llvm::Error::success();
}

/// One block of windows as columns, times the filters of one group; see multiplyAdd.
template <typename T, typename Sum>
static void convolve(const Call &call, Tensor &result, const Walk &walk, int64_t groups,
                     bool channelsLast) {
  constexpr int64_t kColumns = 128, kDepth = 256;
  Layout from(call[0].shape, channelsLast), to(result.shape, channelsLast);
  std::vector<T> x = load<T>(call[0]), w = load<T>(call[1]);
  std::vector<Sum> results(result.count());
  int64_t windowSize = countOf(walk.window), positions = countOf(to.spatial);
  int64_t channels = from.channels / groups, filters = to.channels / groups;
  int64_t depth = channels * windowSize;
  std::vector<int64_t> offsets = walk.innerOffsets(from, to.spatial);
  std::vector<int64_t> targets;
  forEachIndex(to.spatial, [&](ArrayRef<int64_t> position, int64_t) {
    targets.push_back(to.offsetOf(position));
  });
  std::vector<T> columns(kDepth * kColumns);
  std::vector<Sum> sums(filters * kColumns);
  auto block = [&](int64_t batch, int64_t group, int64_t p0) {
    int64_t width = std::min(kColumns, positions - p0);
    std::fill(sums.begin(), sums.end(), Sum(0));
    for (int64_t d0 = 0; d0 < depth; d0 += kDepth) {
      int64_t height = std::min(kDepth, depth - d0);
      for (int64_t d = 0; d < height; ++d) {
        int64_t channel = group * channels + (d0 + d) / windowSize;
        const int64_t *row = offsets.data() + (d0 + d) % windowSize * positions + p0;
        const T *base = x.data() + batch * from.batchStride + channel * from.channelStride;
        for (int64_t p = 0; p < width; ++p)
          columns[d * kColumns + p] = row[p] < 0 ? T(0) : base[row[p]];
      }
      multiplyAdd(filters, height, width, w.data() + group * filters * depth + d0, depth,
                  columns.data(), kColumns, sums.data(), kColumns);
    }
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t p = 0; p < width; ++p)
        results[batch * to.batchStride + (group * filters + f) * to.channelStride +
                targets[p0 + p]] = sums[f * kColumns + p];
  };
  for (int64_t batch = 0; batch < from.batches; ++batch)
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t p0 = 0; p0 < positions; p0 += kColumns)
        block(batch, group, p0);
  storeSums(result, results);
}

Results compute(ConvOp op, const Call &call) {
  const Tensor &x = call[0], &w = call[1];
  Walk walk{op.getStrides(), op.getDilations(), op.getLow(),
            ArrayRef<int64_t>(w.shape).drop_front(2)};
  int64_t groups = op.getGroups();
  if (llvm::Error error = checkWalk(call, walk, groups))
    return error;
  Layout from(x.shape, op.getChannelsLast());
  if (from.channels != w.shape[1] * groups || w.shape[0] % groups != 0)
    return call.error("x has " + Twine(from.channels) + " channels and w has shape " +
                      textOf(w.shape) + ", which does not suit " + Twine(groups) + " groups");
  SmallVector<int64_t> spatial;
  for (size_t i = 0; i < from.spatial.size(); ++i) {
    int64_t room = from.spatial[i] + op.getLow()[i] + op.getHigh()[i] -
                   op.getDilations()[i] * (walk.window[i] - 1) - 1;
    spatial.push_back(room < 0 ? 0 : room / op.getStrides()[i] + 1);
  }
  auto result = call.allocate(shapeFrom(from.batches, w.shape[0], spatial, op.getChannelsLast()));
  if (!result)
    return result.takeError();
  withProduct(x.element, [&](auto zero, auto sum) {
    convolve<decltype(zero), decltype(sum)>(call, *result, walk, groups, op.getChannelsLast());
  });
  return single(*result);
}

/// Each element of x adds its product with the filter to the window that it came from.
template <typename T, typename Sum>
static void spread(const Call &call, Tensor &result, const Walk &walk, int64_t groups,
                   bool channelsLast) {
  Layout from(call[0].shape, channelsLast), to(result.shape, channelsLast);
  std::vector<T> x = load<T>(call[0]), w = load<T>(call[1]);
  std::vector<Sum> results(result.count());
  int64_t windowSize = countOf(walk.window), positions = countOf(from.spatial);
  int64_t channels = from.channels / groups, filters = to.channels / groups;
  std::vector<int64_t> targets = walk.innerOffsets(to, from.spatial), sources;
  forEachIndex(from.spatial, [&](ArrayRef<int64_t> position, int64_t) {
    sources.push_back(from.offsetOf(position));
  });
  auto channel = [&](int64_t batch, int64_t c, int64_t f) {
    int64_t group = c / channels;
    const T *in = x.data() + batch * from.batchStride + c * from.channelStride;
    Sum *out = results.data() + batch * to.batchStride + (group * filters + f) * to.channelStride;
    for (int64_t i = 0; i < windowSize; ++i) {
      Sum factor = static_cast<Sum>(w[(c * filters + f) * windowSize + i]);
      const int64_t *target = targets.data() + i * positions;
      for (int64_t p = 0; p < positions; ++p)
        if (target[p] >= 0)
          out[target[p]] += factor * static_cast<Sum>(in[sources[p]]);
    }
  };
  for (int64_t batch = 0; batch < from.batches; ++batch)
    for (int64_t c = 0; c < from.channels; ++c)
      for (int64_t f = 0; f < filters; ++f)
        channel(batch, c, f);
  storeSums(result, results);
}

Results compute(ConvTransposeOp op, const Call &call) {
  const Tensor &x = call[0], &w = call[1];
  Walk walk{op.getStrides(), op.getDilations(), op.getLow(),
            ArrayRef<int64_t>(w.shape).drop_front(2)};
  int64_t groups = op.getGroups();
  if (llvm::Error error = checkWalk(call, walk, groups))
    return error;
  Layout from(x.shape, op.getChannelsLast());
  if (from.channels != w.shape[0] || from.channels % groups != 0)
    return call.error("x has " + Twine(from.channels) + " channels and w has shape " +
                      textOf(w.shape) + ", which does not suit " + Twine(groups) + " groups");
  SmallVector<int64_t> spatial;
  for (size_t i = 0; i < from.spatial.size(); ++i)
    spatial.push_back(std::max<int64_t>(0, (from.spatial[i] - 1) * op.getStrides()[i] +
                                               op.getDilations()[i] * (walk.window[i] - 1) + 1 +
                                               op.getOutputPadding()[i] - op.getLow()[i] -
                                               op.getHigh()[i]));
  auto result =
      call.allocate(shapeFrom(from.batches, w.shape[1] * groups, spatial, op.getChannelsLast()));
  if (!result)
    return result.takeError();
  withProduct(x.element, [&](auto zero, auto sum) {
    spread<decltype(zero), decltype(sum)>(call, *result, walk, groups, op.getChannelsLast());
  });
  return single(*result);
}

/// Sums for each filter element the products that it met, image by image and position by position.
template <typename T, typename Sum>
static void correlate(const Call &call, Tensor &result, const Walk &walk, int64_t groups,
                      bool channelsLast) {
  Layout from(call[0].shape, channelsLast), at(call[1].shape, channelsLast);
  std::vector<T> x = load<T>(call[0]), dy = load<T>(call[1]);
  std::vector<Sum> results(result.count());
  int64_t windowSize = countOf(walk.window), positions = countOf(at.spatial);
  int64_t channels = from.channels / groups, filters = at.channels / groups;
  std::vector<int64_t> sources = walk.innerOffsets(from, at.spatial), places;
  forEachIndex(at.spatial, [&](ArrayRef<int64_t> position, int64_t) {
    places.push_back(at.offsetOf(position));
  });
  auto sumOf = [&](int64_t filter, int64_t channel, const int64_t *source) {
    Sum sum(0);
    for (int64_t n = 0; n < at.batches; ++n) {
      const T *image = x.data() + n * from.batchStride + channel * from.channelStride;
      const T *slopes = dy.data() + n * at.batchStride + filter * at.channelStride;
      for (int64_t p = 0; p < positions; ++p)
        if (source[p] >= 0)
          sum += static_cast<Sum>(image[source[p]]) * static_cast<Sum>(slopes[places[p]]);
    }
    return sum;
  };
  for (int64_t filter = 0; filter < at.channels; ++filter)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t k = 0; k < windowSize; ++k)
        results[(filter * channels + c) * windowSize + k] =
            sumOf(filter, filter / filters * channels + c, sources.data() + k * positions);
  storeSums(result, results);
}

Results compute(ConvFilterGradientOp op, const Call &call) {
  auto shape = call.shapeOfResult();
  if (!shape)
    return shape.takeError();
  Walk walk{op.getStrides(), op.getDilations(), op.getLow(), ArrayRef(*shape).drop_front(2)};
  int64_t groups = op.getGroups();
  if (llvm::Error error = checkWalk(call, walk, groups))
    return error;
  Layout from(call[0].shape, op.getChannelsLast()), at(call[1].shape, op.getChannelsLast());
  if (from.batches != at.batches || from.channels != (*shape)[1] * groups ||
      at.channels != (*shape)[0] || at.channels % groups != 0)
    return call.error("images of shapes " + textOf(call[0].shape) + " and " +
                      textOf(call[1].shape) + " do not suit filters of shape " + textOf(*shape) +
                      " in " + Twine(groups) + " groups");
  auto result = call.allocate(*shape);
  if (!result)
    return result.takeError();
  withProduct(call[0].element, [&](auto zero, auto sum) {
    correlate<decltype(zero), decltype(sum)>(call, *result, walk, groups, op.getChannelsLast());
  });
  return single(*result);
}

} // namespace heddle::reference
