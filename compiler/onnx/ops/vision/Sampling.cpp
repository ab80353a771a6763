// Sampling: the neighbours of all places are gathered at once, along a dimension of their own,
// weighted, and summed.

#include "compiler/onnx/ops/vision/Sampling.h"

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

SmallVector<Value> stridesOf(Emitter &e, ArrayRef<Dim> sizes) {
  SmallVector<Value> strides(sizes.size());
  Dim stride(1);
  for (size_t d = sizes.size(); d-- > 0; stride = stride * sizes[d])
    strides[d] = sizeNumber(e, stride, e.i64());
  return strides;
}

/// x mirrored at low and high until it lies between them.
static Value reflect(Emitter &e, Value x, Value low, Value high) {
  Value range = e.sub(high, low), zero = e.scalar(elementOf(x), 0);
  Value period = e.binary<MaxOp>(e.mul(range, 2), e.scalar(elementOf(x), 1e-3));
  Value offset = e.binary<ModOp>(e.unary<AbsOp>(e.sub(x, low)), period, {e.flag("fmod", true)});
  Value turned = e.binary<MaxOp>(e.sub(e.mul(range, 2), offset), zero);
  return e.add(low, e.select(e.compare<GreaterOp>(offset, range), turned, offset));
}

namespace {
/// The neighbours of places along one dimension: [n, taps, count], so that lanes are places.
struct Taps {
  Value index;  // i64, inside of the image
  Value weight; // null: 1
  Value inside; // null: all are
};
} // namespace

Value cubicWeight(Emitter &e, Value distance, double a) {
  Value t = distance, square = e.mul(t, t);
  Value near = e.add(e.mul(square, e.add(e.mul(t, a + 2), -(a + 3))), 1);
  Value far = e.add(e.mul(e.add(e.mul(e.add(e.mul(t, a), -5 * a), t), 8 * a), t), -4 * a);
  return e.select(e.compare<LessEqualOp>(t, e.scalar(elementOf(t), 1)), near, far);
}

static constexpr double kCubicCoefficient = -0.75; // GridSample's

static Taps tapsOf(Emitter &e, Value place, const Dim &size, const SampleRule &rule) {
  Type element = elementOf(place);
  Value zero = e.scalar(element, 0), last = e.add(sizeNumber(e, size, element), -1);
  double margin = rule.alignsCorners ? 0 : 0.5;
  Value low = e.scalar(element, -margin), high = e.add(last, margin);
  if (rule.interpolation == Interpolation::Nearest)
    place = e.unary<RoundOp>(place);
  Value isOutside =
      e.binary<OrOp>(e.compare<LessOp>(place, low), e.compare<GreaterOp>(place, high));
  if (rule.outside == Outside::Border)
    place = e.select(isOutside, clampTo(e, place, zero, last), place);
  else if (rule.outside == Outside::Reflection)
    place = e.select(isOutside, reflect(e, place, low, high), place);

  place = e.unsqueeze(place, {1});
  Value at = place;
  Taps taps;
  if (rule.interpolation != Interpolation::Nearest) {
    bool isCubic = rule.interpolation == Interpolation::Cubic;
    Value offsets = numbers(e, isCubic ? ArrayRef<double>{-1, 0, 1, 2} : ArrayRef<double>{0, 1},
                            {isCubic ? 4 : 2, 1}, element);
    at = e.add(e.unary<FloorOp>(place), offsets);
    Value distance = e.unary<AbsOp>(e.sub(place, at));
    taps.weight = isCubic ? cubicWeight(e, distance, kCubicCoefficient)
                          : e.sub(e.scalar(element, 1), distance);
  }
  if (rule.outside == Outside::Zeros)
    taps.inside =
        e.binary<AndOp>(e.compare<GreaterEqualOp>(at, zero), e.compare<LessEqualOp>(at, last));
  else if (rule.outside == Outside::Reflection)
    at = e.unary<TruncOp>(reflect(e, at, low, high));
  at = e.select(e.compare<EqualOp>(at, at), at, zero); // NaN is no place
  taps.index = e.cast(clampTo(e, at, zero, last), e.i64());
  return taps;
}

/// taps [n, taps of dimension d, count] where those of all dimensions are [n, t0, t1, ..., count].
static Value spread(Emitter &e, Value taps, int64_t d, int64_t dimensions) {
  Ints axes;
  for (int64_t i = 0; i < dimensions; ++i)
    if (i != d)
      axes.push_back(1 + i);
  return e.unsqueeze(taps, axes);
}

Value sampleImage(Emitter &e, Value x, ArrayRef<Value> places, const SampleRule &rule) {
  DimVector dims = dimsOf(x), sizes(dims.begin() + 2, dims.end());
  int64_t dimensions = sizes.size();
  SmallVector<Value> strides = stridesOf(e, sizes);
  Value index, weight, inside;
  for (int64_t d = 0; d < dimensions; ++d) {
    Taps taps = tapsOf(e, places[d], sizes[d], rule);
    Value part = e.mul(spread(e, taps.index, d, dimensions), strides[d]);
    index = index ? e.add(index, part) : part;
    if (taps.weight) {
      part = spread(e, taps.weight, d, dimensions);
      weight = weight ? e.mul(weight, part) : part;
    }
    if (taps.inside) {
      part = spread(e, taps.inside, d, dimensions);
      inside = inside ? e.binary<AndOp>(inside, part) : part;
    }
  }
  DimVector all = dimsOf(index);
  Dim taps = elementCount(ArrayRef<Dim>(all).drop_front(1).drop_back(1)), count = all.back();
  Value flat = e.reshape(x, {dims[0], dims[1], elementCount(sizes)});
  index = e.reshape(index, {all[0], Dim(1), taps * count});
  index = e.broadcast(index, {dims[0], dims[1], taps * count});
  Value values = e.infer<GatherElementsOp>({flat, index}, {e.integer("axis", 2)});
  values = e.reshape(values, {dims[0], dims[1], taps, count});
  if (weight)
    values = e.mul(values, e.reshape(weight, {all[0], Dim(1), taps, count}));
  if (inside)
    values = e.select(e.reshape(inside, {all[0], Dim(1), taps, count}), values,
                      e.scalar(elementOf(values), 0));
  return e.reduce<ReduceSumOp>(values, {2}, false);
}

static SampleRule readRule(Node &n) {
  SampleRule rule;
  std::string mode = n.getText("mode", "linear"), outside = n.getText("padding_mode", "zeros");
  if (mode == "nearest")
    rule.interpolation = Interpolation::Nearest;
  else if (mode == "cubic" || mode == "bicubic")
    rule.interpolation = Interpolation::Cubic;
  else if (mode != "linear" && mode != "bilinear")
    refuse("'mode' is '" + mode + "', but must be 'linear', 'nearest' or 'cubic'");
  if (outside == "border")
    rule.outside = Outside::Border;
  else if (outside == "reflection")
    rule.outside = Outside::Reflection;
  else if (outside != "zeros")
    refuse("'padding_mode' is '" + outside + "', but must be 'zeros', 'border' or 'reflection'");
  rule.alignsCorners = n.getInt("align_corners", 0);
  return rule;
}

/// Places run from -1 to 1 and name the last dimension first.
static void importGridSample(Node &n) {
  Value x = n.in(0), grid = n.in(1);
  int64_t dimensions = rankOf(x) - 2, last = rankOf(grid) - 1;
  DimVector dims = dimsOf(x), gridDims = dimsOf(grid);
  if (dimensions < 1 || last != dimensions + 1 ||
      gridDims[last].constant().value_or(dimensions) != dimensions)
    refuse("an input of shape " + textOf(dims) + " does not fit a grid of shape " +
           textOf(gridDims));
  SampleRule rule = readRule(n);
  Type wide = isFloat(x) ? wideType(n, elementOf(x)) : n.f32();
  Dim count = elementCount(ArrayRef<Dim>(gridDims).drop_front(1).drop_back(1));
  SmallVector<Value> places;
  for (int64_t d = 0; d < dimensions; ++d) {
    Value part = n.sliceAlong(grid, last, Dim(dimensions - 1 - d), Dim(1));
    part = n.cast(n.reshape(part, {gridDims[0], count}), wide);
    Value size = sizeNumber(n, dims[2 + d], wide), shifted = n.add(part, 1);
    places.push_back(rule.alignsCorners ? n.mul(n.div(shifted, 2), n.add(size, -1))
                                        : n.div(n.add(n.mul(shifted, size), -1), 2));
  }
  Value values = sampleImage(n, n.cast(x, wide), places, rule);
  DimVector to = {dims[0], dims[1]};
  to.append(gridDims.begin() + 1, gridDims.end() - 1);
  n.set(n.cast(n.reshape(values, to), elementOf(x)));
}

/// Positions from -1 to 1 along each dimension, times the matrices theta [n, r, r + 1].
static void importAffineGrid(Node &n) {
  Value theta = n.in(0), size = n.vector(1, "size");
  if (rankOf(theta) != 3)
    refuse("'theta' must have rank 3, but has the shape " + textOf(dimsOf(theta)));
  auto entries = dimsOf(size)[0].constant();
  if (!entries && dimsOf(theta)[1].constant())
    entries = *dimsOf(theta)[1].constant() + 2;
  if (auto rank = n.declaredRank(0); rank && !entries)
    entries = rank;
  if (!entries || (*entries != 4 && *entries != 5))
    refuse("'size' must have 4 or 5 entries");
  int64_t dimensions = *entries - 2;
  Type element = elementOf(theta), wide = wideType(n, element);
  bool alignsCorners = n.getInt("align_corners", 0);
  SmallVector<Value> ramps;
  DimVector sizes;
  for (int64_t d = 0; d < dimensions; ++d) {
    Value places = countUpTo(n, elementAt(n, size, 2 + d), "size");
    sizes.push_back(dimsOf(places)[0]);
    Value count = n.cast(n.reshape(elementAt(n, size, 2 + d), {}), wide);
    Value doubled = n.mul(n.cast(places, wide), 2);
    ramps.push_back(alignsCorners ? n.add(n.div(doubled, n.add(count, -1)), -1)
                                  : n.add(n.div(n.add(doubled, 1), count), -1));
  }
  // One column a coordinate, the last dimension first, and the ones that the shift needs.
  SmallVector<Value> columns;
  DimVector column = sizes;
  column.push_back(Dim(1));
  for (int64_t d = dimensions; d-- > 0;)
    columns.push_back(n.broadcast(n.alongAxis(ramps[d], d, dimensions + 1), column));
  columns.push_back(n.full(column, wide, 1));
  Dim count = elementCount(sizes);
  Value grid = n.reshape(n.concat(columns, dimensions), {count, Dim(dimensions + 1)});
  Value matrix = n.transpose(n.cast(theta, wide), {0, 2, 1});
  Value moved = n.matmul(grid, matrix);
  DimVector to = {dimsOf(theta)[0]};
  to.append(sizes);
  to.push_back(Dim(dimensions));
  n.set(n.cast(n.reshape(moved, to), element));
}

OpRows samplingRows() {
  static const OpRow rows[] = {
      {"GridSample", "", 16, 27, importGridSample},
      {"AffineGrid", "", 20, 27, importAffineGrid},
  };
  return rows;
}

} // namespace heddle::onnx
