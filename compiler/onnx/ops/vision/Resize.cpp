// Resize: Resize and Upsample. A resize by sizes known at compile time becomes one graph op; scales
// and regions of the run, antialiasing and integers are spelt out, one axis after the other.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/vision/Sampling.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
/// The attributes, checked.
struct Sampling {
  std::string mode, coordinates, nearest;
  double cubicCoefficient, extrapolation;
  bool antialias, excludeOutside;
};

/// One axis that is resized; numbers are f64 scalars.
struct Axis {
  int64_t axis;
  Dim from, to;
  Value scale;      // as the model gives it; `to` may be rounded
  Value start, end; // used by tf_crop_and_resize
};
} // namespace

static Sampling readSampling(Node &n) {
  bool isOld = n.opset < 11; // Upsample, and the Resize like it
  Sampling sampling{
      n.getText("mode", "nearest"),
      n.getText("coordinate_transformation_mode", isOld ? "asymmetric" : "half_pixel"),
      n.getText("nearest_mode", isOld ? "floor" : "round_prefer_floor"),
      n.getFloat("cubic_coeff_a", -0.75),
      n.getFloat("extrapolation_value", 0),
      n.getInt("antialias", 0) != 0,
      n.getInt("exclude_outside", 0) != 0};
  if (sampling.mode == "bilinear" || sampling.mode == "trilinear")
    sampling.mode = "linear";
  auto require = [](const std::string &what, const std::string &value,
                    std::initializer_list<const char *> allowed) {
    if (llvm::is_contained(allowed, value))
      return;
    std::string list;
    for (const char *name : allowed)
      list += (list.empty() ? "'" : ", '") + std::string(name) + "'";
    refuse("'" + what + "' is '" + value + "', but must be one of " + list);
  };
  require("mode", sampling.mode, {"nearest", "linear", "cubic"});
  require("coordinate_transformation_mode", sampling.coordinates,
          {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
           "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"});
  require("nearest_mode", sampling.nearest,
          {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  return sampling;
}

/// floor(size * scale), where the scale is a fraction with a small divisor.
static std::optional<Dim> scaledSize(const Dim &size, double scale) {
  if (auto number = size.constant())
    return Dim(static_cast<int64_t>(std::floor(*number * scale)));
  for (int64_t divisor = 1; divisor <= 1024; ++divisor) {
    int64_t whole = std::llround(scale * divisor);
    if (static_cast<float>(double(whole) / divisor) == static_cast<float>(scale))
      return (size * Dim(whole)).floorDiv(Dim(divisor));
  }
  return std::nullopt;
}

/// Coordinates in x of the result's elements along the axis: f64[to].
static Value placesAlong(Emitter &e, const Axis &axis, StringRef coordinates) {
  Type f64 = e.builder.getF64Type();
  Value i = e.iota(axis.to, 0, f64), from = sizeNumber(e, axis.from, f64);
  Value width = e.mul(from, axis.scale), last = e.add(from, -1), one = e.scalar(f64, 1);
  Value isSingle = e.compare<EqualOp>(width, one);
  // The quotient is not used if the width is 1.
  Value lastWidth = e.select(isSingle, one, e.add(width, -1));
  Value halfPixel = e.add(e.div(e.add(i, 0.5), axis.scale), -0.5);
  if (coordinates == "align_corners")
    return e.select(isSingle, e.scalar(f64, 0), e.div(e.mul(i, last), lastWidth));
  if (coordinates == "asymmetric")
    return e.div(i, axis.scale);
  if (coordinates == "tf_half_pixel_for_nn")
    return e.div(e.add(i, 0.5), axis.scale);
  if (coordinates == "pytorch_half_pixel")
    return e.select(isSingle, e.scalar(f64, -0.5), halfPixel);
  if (coordinates == "half_pixel_symmetric") {
    Value adjustment = e.div(sizeNumber(e, axis.to, f64), width);
    return e.add(e.mul(e.div(from, 2), e.sub(one, adjustment)), halfPixel);
  }
  if (coordinates == "tf_crop_and_resize") {
    Value extent = e.mul(e.sub(axis.end, axis.start), last);
    Value inside = e.select(isSingle, e.div(extent, 2), e.div(e.mul(i, extent), lastWidth));
    return e.add(inside, e.mul(axis.start, last));
  }
  return halfPixel;
}

/// Keys' cubic, or the triangle, as a function of the distance.
static Value filterAt(Emitter &e, Value distance, const Sampling &sampling) {
  Value one = e.scalar(elementOf(distance), 1), zero = e.scalar(elementOf(distance), 0);
  if (sampling.mode == "linear")
    return e.binary<MaxOp>(e.sub(one, distance), zero);
  Value reaches = e.compare<LessOp>(distance, e.scalar(elementOf(distance), 2));
  return e.select(reaches, cubicWeight(e, distance, sampling.cubicCoefficient), zero);
}

static Value clampIndex(Emitter &e, Value index, const Dim &size) {
  return clampTo(e, index, e.integerScalar(e.i64(), 0), e.size(size - Dim(1)));
}

static Value nearestAlong(Emitter &e, Value x, const Axis &axis, Value places, StringRef rule) {
  Value rounded = rule == "floor"                ? e.unary<FloorOp>(places)
                  : rule == "ceil"               ? e.unary<CeilOp>(places)
                  : rule == "round_prefer_floor" ? e.unary<CeilOp>(e.add(places, -0.5))
                                                 : e.unary<FloorOp>(e.add(places, 0.5));
  return e.gather(x, clampIndex(e, e.cast(rounded, e.i64()), axis.from), axis.axis);
}

/// Every element of the result is a weighted sum of some of x: those next to its place, or with
/// antialiasing as many as the filter, stretched by the scale, reaches.
static Value weighAlong(Emitter &e, Value x, const Axis &axis, Value places,
                        const Sampling &sampling) {
  Type f64 = e.builder.getF64Type();
  Value column = e.unsqueeze(places, {1}), one = e.scalar(f64, 1), index, stretch = one;
  if (sampling.antialias) {
    stretch = e.binary<MinOp>(axis.scale, one);
    Value reach = e.cast(e.unary<CeilOp>(e.div(e.scalar(f64, 2), stretch)), e.i64());
    Dim margin = e.bindSizes(e.add(reach, 1), "reach")[0];
    DimVector box = {axis.to, axis.from + margin * Dim(2)};
    index = e.sub(e.iota(box, 1, e.i64()), e.size(margin));
  } else {
    int64_t taps = sampling.mode == "cubic" ? 4 : 2;
    Value first = e.add(e.cast(e.unary<FloorOp>(column), e.i64()), 1 - taps / 2);
    index = e.add(e.iota({axis.to, Dim(taps)}, 1, e.i64()), first);
  }
  Value distance = e.unary<AbsOp>(e.sub(e.cast(index, f64), column));
  Value weights = filterAt(e, e.mul(distance, stretch), sampling);
  Value inside = clampIndex(e, index, axis.from), zero = e.scalar(f64, 0);
  if (sampling.excludeOutside)
    weights = e.select(e.compare<EqualOp>(inside, index), weights, zero);
  if (sampling.excludeOutside || sampling.antialias) {
    Value sum = e.reduce<ReduceSumOp>(weights, {1});
    weights = e.div(weights, e.select(e.compare<EqualOp>(sum, zero), one, sum));
  }
  DimVector aligned = dimsOf(weights);
  aligned.append(rankOf(x) - axis.axis - 1, Dim(1));
  Value factors = e.reshape(e.cast(weights, elementOf(x)), aligned);
  Value products = e.mul(e.gather(x, inside, axis.axis), factors);
  return e.reduce<ReduceSumOp>(products, {axis.axis + 1}, false);
}

static Value resizeAlong(Emitter &e, Value x, ArrayRef<Axis> axes, const Sampling &sampling) {
  Type element = elementOf(x);
  bool isNearest = sampling.mode == "nearest";
  Value outside;
  for (const Axis &axis : axes) {
    Value places = placesAlong(e, axis, sampling.coordinates);
    if (isNearest) {
      x = nearestAlong(e, x, axis, places, sampling.nearest);
    } else {
      Type wide = element.isF64() ? element : Type(e.f32());
      x = weighAlong(e, e.cast(x, wide), axis, places, sampling);
    }
    if (sampling.coordinates != "tf_crop_and_resize")
      continue;
    Value last = sizeNumber(e, axis.from - Dim(1), elementOf(places));
    Value beyond = e.binary<OrOp>(e.compare<LessOp>(places, e.scalar(elementOf(places), 0)),
                                  e.compare<GreaterOp>(places, last));
    beyond = e.alongAxis(beyond, axis.axis, rankOf(x));
    if (outside)
      e.broadcastTogether({&outside, &beyond});
    outside = outside ? e.binary<OrOp>(outside, beyond) : beyond;
  }
  x = e.cast(x, element);
  return outside ? e.select(outside, e.scalar(element, sampling.extrapolation), x) : x;
}

/// One graph op, where everything is known. `scales` has 0 if the sizes give the scale.
static void resizeTo(Node &n, ArrayRef<Dim> dims, ArrayRef<double> scales,
                     const Sampling &sampling) {
  Value x = n.in(0);
  if (DimVector(dims) == dimsOf(x) &&
      llvm::all_of(scales, [](double scale) { return scale == 0 || scale == 1; }))
    return n.set(x);
  auto number = [&](double value) { return n.builder.getF64FloatAttr(value); };
  n.set(n.typed<ResizeOp>(
      n.tensor(dims, elementOf(x)), x,
      {n.named("scales", n.builder.getDenseF64ArrayAttr(scales)), n.text("mode", sampling.mode),
       n.text("coordinates", sampling.coordinates), n.text("nearest", sampling.nearest),
       n.named("cubic_coefficient", number(sampling.cubicCoefficient)),
       n.flag("exclude_outside", sampling.excludeOutside),
       n.named("extrapolation", number(sampling.extrapolation))}));
}

/// Whether the graph op can say it.
static bool isPlain(Value x, const Sampling &sampling) {
  return !sampling.antialias && sampling.coordinates != "tf_crop_and_resize" &&
         (sampling.mode == "nearest" || isFloat(x));
}

static void checkCount(Value list, size_t needed, StringRef name) {
  auto count = elementCount(dimsOf(list)).constant();
  if (count && *count != (int64_t)needed)
    refuse("'" + name + "' has " + Twine(*count) + " entries, but needs " + Twine(needed));
}

/// The bounds of axis `i` of `count` in a region, which may be null: then they are too.
static std::pair<Value, Value> regionAlong(Emitter &e, Value roi, size_t i, size_t count) {
  if (!roi)
    return {};
  Value bounds = e.cast(roi, e.builder.getF64Type());
  return {elementAt(e, bounds, i), elementAt(e, bounds, count + i)};
}

/// `scales` and `roi` may be null.
static void resizeBy(Node &n, Value scales, std::optional<std::vector<double>> known,
                     ArrayRef<int64_t> axes, Value roi, const Sampling &sampling) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  if (known && known->size() != axes.size())
    refuse("'scales' has " + Twine(known->size()) + " entries, but needs " + Twine(axes.size()));
  if (known && isPlain(x, sampling)) {
    std::vector<double> all(dims.size(), 1.0);
    bool isSimple = true;
    for (auto [axis, scale] : llvm::zip(axes, *known)) {
      if (!(scale > 0))
        refuse("a scale is " + std::to_string(scale) + ", but must be positive");
      auto size = scaledSize(dims[axis], scale);
      isSimple &= size.has_value();
      dims[axis] = size.value_or(dims[axis]);
      all[axis] = scale;
    }
    if (isSimple)
      return resizeTo(n, dims, all, sampling);
    dims = dimsOf(x);
  }
  Type f64 = n.builder.getF64Type();
  SmallVector<Axis> resized;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Value scale = known ? n.scalar(f64, (*known)[i]) : elementAt(n, n.cast(scales, f64), i);
    Value wanted = n.unary<FloorOp>(n.mul(sizeNumber(n, dims[axis], f64), scale));
    Dim to = known && dims[axis].constant()
                 ? Dim(int64_t(std::floor(*dims[axis].constant() * (*known)[i])))
                 : n.bindSizes(n.cast(wanted, n.i64()), "size")[0];
    auto [start, end] = regionAlong(n, roi, i, axes.size());
    bool isSame = known && (*known)[i] == 1 && !roi;
    if (!isSame)
      resized.push_back({axis, dims[axis], to, scale, start, end});
  }
  n.set(resizeAlong(n, x, resized, sampling));
}

static void resizeToSizes(Node &n, ArrayRef<int64_t> axes, Value roi, const Sampling &sampling) {
  Value x = n.in(0), asked = n.in(3);
  std::string policy = n.getText("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    refuse("'keep_aspect_ratio_policy' is '" + policy +
           "', but must be 'stretch', 'not_larger' or 'not_smaller'");
  checkCount(asked, axes.size(), "sizes");
  DimVector dims = dimsOf(x), sizes = n.bindSizes(n.reshape(asked, Dim(axes.size())), "sizes");
  if (policy == "stretch" && isPlain(x, sampling)) {
    std::vector<double> scales(dims.size(), 1.0);
    for (auto [axis, size] : llvm::zip(axes, sizes)) {
      if (dims[axis] != size)
        scales[axis] = 0.0;
      dims[axis] = size;
    }
    return resizeTo(n, dims, scales, sampling);
  }
  Type f64 = n.builder.getF64Type();
  SmallVector<Axis> resized;
  Value common;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Value scale = n.div(sizeNumber(n, sizes[i], f64), sizeNumber(n, dims[axis], f64));
    common = !common                  ? scale
             : policy == "not_larger" ? n.binary<MinOp>(common, scale)
                                      : n.binary<MaxOp>(common, scale);
    auto [start, end] = regionAlong(n, roi, i, axes.size());
    resized.push_back({axis, dims[axis], sizes[i], scale, start, end});
  }
  if (policy != "stretch")
    for (Axis &axis : resized) {
      axis.scale = common;
      Value wanted = n.add(n.mul(sizeNumber(n, axis.from, f64), common), 0.5);
      axis.to = n.bindSizes(n.cast(n.unary<FloorOp>(wanted), n.i64()), "size")[0];
    }
  n.set(resizeAlong(n, x, resized, sampling));
}

static void importUpsample(Node &n) {
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(n.in(0))));
  Sampling sampling = readSampling(n);
  if (n.opset >= 9)
    return resizeBy(n, n.in(1), n.floatsFrom(1), axes, {}, sampling);
  auto scales = n.getFloats("scales");
  if (n.opset < 7)
    scales = {1, 1, n.getFloat("height_scale", 1), n.getFloat("width_scale", 1)};
  resizeBy(n, {}, scales, axes, {}, sampling);
}

static void importResize(Node &n) {
  int64_t rank = rankOf(n.in(0));
  Ints axes = n.axes(n.getInts("axes", {}), rank);
  if (axes.empty())
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Sampling sampling = readSampling(n);
  if (n.opset < 11)
    return resizeBy(n, n.in(1), n.floatsFrom(1), axes, {}, sampling);
  Value roi;
  if (sampling.coordinates == "tf_crop_and_resize") {
    roi = n.in(1);
    checkCount(roi, 2 * axes.size(), "roi");
  }
  bool hasSizes = n.has(3) && !elementCount(dimsOf(n.in(3))).isConstant(0);
  if (hasSizes)
    return resizeToSizes(n, axes, roi, sampling);
  checkCount(n.in(2), axes.size(), "scales");
  resizeBy(n, n.in(2), n.floatsFrom(2), axes, roi, sampling);
}

OpRows resizeRows() {
  static const OpRow rows[] = {
      {"Resize", "", 10, 27, importResize},
      {"Upsample", "", 1, 9, importUpsample},
  };
  return rows;
}

} // namespace heddle::onnx
