// Resize: ONNX's Resize, one axis after the other, each with a table of weights for its positions.

#include "compiler/reference/Families.h"

#include <cmath>

using namespace mlir;

namespace heddle::reference {

using namespace graph;

namespace {
struct Tap {
  int64_t place;
  double weight;
};
/// The elements of x, with their weights, that make one position of the result.
using Taps = SmallVector<Tap, 4>;

struct Axis {
  int64_t from, to;
  float scale;
};
} // namespace

/// Computes in f32, as ONNX's evaluator does: the nearest element depends on the rounding.
static std::optional<float> coordinateOf(StringRef kind, int64_t position, const Axis &axis) {
  float x = static_cast<float>(position), half = (x + 0.5f) / axis.scale - 0.5f;
  float from = static_cast<float>(axis.from), to = static_cast<float>(axis.to);
  if (kind == "half_pixel")
    return half;
  if (kind == "half_pixel_symmetric") {
    float adjustment = to / (axis.scale * from);
    return from / 2 * (1 - adjustment) + half;
  }
  if (kind == "pytorch_half_pixel")
    return axis.to > 1 ? half : 0.0f;
  if (kind == "align_corners") {
    // ONNX measures by the scale, also where the size is rounded.
    float last = axis.scale * from - 1;
    return last == 0 ? 0.0f : x * (from - 1) / last;
  }
  if (kind == "asymmetric")
    return x / axis.scale;
  if (kind == "tf_half_pixel_for_nn")
    return (x + 0.5f) / axis.scale;
  return std::nullopt;
}

static float nearestOf(StringRef kind, float x) {
  if (kind == "floor")
    return std::floor(x);
  if (kind == "ceil")
    return std::ceil(x);
  if (kind == "round_prefer_ceil")
    return std::floor(x + 0.5f);
  return std::ceil(x - 0.5f); // round_prefer_floor
}

/// Weights of the neighbours floor(x) - 1 .. floor(x) + 2, by Keys' cubic convolution.
static std::array<double, 4> cubicWeights(double t, double a) {
  auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

static Taps tapsOf(ResizeOp op, float x, int64_t size) {
  Taps taps;
  if (op.getMode() == "nearest") {
    taps.push_back({static_cast<int64_t>(nearestOf(op.getNearest(), x)), 1.0});
  } else {
    int64_t base = static_cast<int64_t>(std::floor(x));
    double t = x - std::floor(x);
    if (op.getMode() == "linear") {
      taps = {{base, 1 - t}, {base + 1, t}};
    } else {
      for (auto [i, weight] :
           llvm::enumerate(cubicWeights(t, op.getCubicCoefficient().convertToDouble())))
        taps.push_back({base - 1 + static_cast<int64_t>(i), weight});
    }
  }
  double total = 0;
  for (Tap &tap : taps) {
    bool isOutside = tap.place < 0 || tap.place >= size;
    if (isOutside && op.getExcludeOutside() && op.getMode() == "cubic")
      tap.weight = 0;
    total += tap.weight;
    tap.place = std::clamp<int64_t>(tap.place, 0, size - 1);
  }
  if (op.getExcludeOutside() && op.getMode() == "cubic")
    for (Tap &tap : taps)
      tap.weight /= total;
  return taps;
}

/// values of `shape`, resized along one axis; shape is updated.
static std::vector<double> resample(ArrayRef<double> values, SmallVectorImpl<int64_t> &shape,
                                    size_t axis, ArrayRef<Taps> taps) {
  int64_t outer = countOf(ArrayRef<int64_t>(shape).take_front(axis));
  int64_t inner = countOf(ArrayRef<int64_t>(shape).drop_front(axis + 1)), size = shape[axis];
  std::vector<double> result;
  result.reserve(outer * taps.size() * inner);
  for (int64_t o = 0; o < outer; ++o)
    for (const Taps &position : taps)
      for (int64_t n = 0; n < inner; ++n) {
        double sum = 0;
        for (const Tap &tap : position)
          // A weight of 0 must not spread a NaN or an infinity.
          if (tap.weight != 0)
            sum += tap.weight * values[(o * size + tap.place) * inner + n];
        result.push_back(sum);
      }
  shape[axis] = taps.size();
  return result;
}

static llvm::Error checkAttributes(ResizeOp op, const Call &call) {
  StringRef mode = op.getMode(), nearest = op.getNearest();
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return call.error("mode is '" + mode + "', but must be nearest, linear or cubic");
  if (nearest != "floor" && nearest != "ceil" && nearest != "round_prefer_floor" &&
      nearest != "round_prefer_ceil")
    return call.error("nearest is '" + nearest + "', but must be floor, ceil, round_prefer_floor " +
                      "or round_prefer_ceil");
  if (!coordinateOf(op.getCoordinates(), 0, {1, 1, 1.0f}))
    return call.error("coordinates is '" + op.getCoordinates() +
                      "', but must be half_pixel, half_pixel_symmetric, pytorch_half_pixel, " +
                      "align_corners, asymmetric or tf_half_pixel_for_nn");
  return llvm::Error::success();
}

Results compute(ResizeOp op, const Call &call) {
  const Tensor &x = call[0];
  if (llvm::Error error = checkAttributes(op, call))
    return error;
  auto target = call.shapeOfResult();
  if (!target)
    return target.takeError();
  auto result = call.allocate(*target);
  if (!result)
    return result.takeError();
  if (result->count() == 0)
    return single(*result);
  if (x.count() == 0)
    return call.error("x has no elements to make " + textOf(*target) + " from");
  SmallVector<int64_t> shape(x.shape);
  std::vector<double> values = load<double>(x);
  for (size_t i = 0; i < shape.size(); ++i) {
    Axis axis{shape[i], (*target)[i], static_cast<float>(op.getScales()[i])};
    if (axis.scale == 0)
      axis.scale = static_cast<float>(axis.to) / static_cast<float>(axis.from);
    if (axis.from == axis.to && axis.scale == 1)
      continue;
    std::vector<Taps> taps;
    for (int64_t position = 0; position < axis.to; ++position)
      taps.push_back(tapsOf(op, *coordinateOf(op.getCoordinates(), position, axis), axis.from));
    values = resample(values, shape, i, taps);
  }
  store<double>(*result, values);
  return single(*result);
}

} // namespace heddle::reference
