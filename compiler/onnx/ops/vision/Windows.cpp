// Windows: pools and folds that gather the elements of all windows at once, [window, place].

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/vision/Sampling.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// Spatial dimensions of an image that is put together from columns.
static constexpr int64_t kMostSpatial = 7;

namespace {
/// Windows of `kernel` elements at `places` over an image of `sizes`.
struct Windows {
  DimVector sizes, kernel, places;
  Ints strides, dilations;
  DimVector low; // padding before
};
struct WindowIndex {
  Value index;  // i64 [elements of the window, places], into the flattened image
  Value inside; // i1, whether it is not padding
};
} // namespace

/// i64 [kernel..., places...]: along spatial dimension d, where in the image each element lies.
static Value placeAlong(Emitter &e, const Windows &windows, size_t d) {
  size_t rank = windows.sizes.size();
  DimVector all = windows.kernel;
  all.append(windows.places);
  Value element = e.mul(e.iota(all, d, e.i64()), e.integerScalar(e.i64(), windows.dilations[d]));
  Value place = e.mul(e.iota(all, rank + d, e.i64()), e.integerScalar(e.i64(), windows.strides[d]));
  return e.sub(e.add(place, element), sizeNumber(e, windows.low[d], e.i64()));
}

static WindowIndex indexWindows(Emitter &e, const Windows &windows) {
  SmallVector<Value> strides = stridesOf(e, windows.sizes);
  Value zero = e.integerScalar(e.i64(), 0);
  WindowIndex result;
  for (size_t d = 0; d < windows.sizes.size(); ++d) {
    Value at = placeAlong(e, windows, d), size = sizeNumber(e, windows.sizes[d], e.i64());
    Value fits = e.binary<AndOp>(e.compare<GreaterEqualOp>(at, zero), e.compare<LessOp>(at, size));
    Value part = e.mul(e.select(fits, at, zero), strides[d]);
    result.index = d ? e.add(result.index, part) : part;
    result.inside = d ? e.binary<AndOp>(result.inside, fits) : fits;
  }
  DimVector flat = {elementCount(windows.kernel), elementCount(windows.places)};
  return {e.reshape(result.index, flat), e.reshape(result.inside, flat)};
}

/// Elements of x [n, c, sizes...] in all windows, [n, c, elements, places]; `filler` for padding.
static Value gatherWindows(Emitter &e, Value x, const Windows &windows, Value filler) {
  DimVector dims = dimsOf(x);
  WindowIndex where = indexWindows(e, windows);
  Value flat = e.reshape(x, {dims[0], dims[1], elementCount(windows.sizes)});
  return e.select(where.inside, e.gather(flat, where.index, 2), filler);
}

/// The windows that the node's attributes describe, for a kernel of known size.
static Windows pooledWindows(Node &n, Value x) {
  auto size = n.getInts("kernel_shape");
  if (!size)
    refuse("'kernel_shape' is missing");
  if (rankOf(x) < 3)
    refuse("the input must have rank 3 or more, but has " + Twine(rankOf(x)));
  DimVector dims = dimsOf(x), sizes(dims.begin() + 2, dims.end()), padded = sizes;
  DimVector kernel(size->begin(), size->end());
  Window window = readWindow(n, kernel, sizes);
  DimVector low(window.low.begin(), window.low.end());
  for (size_t d = 0; d < window.symbolicLow.size(); ++d) {
    low[d] = low[d] + window.symbolicLow[d];
    padded[d] = padded[d] + window.symbolicLow[d] + window.symbolicHigh[d];
  }
  return {sizes,          kernel,           pooledSizes(padded, window, n.getInt("ceil_mode", 0)),
          window.strides, window.dilations, low};
}

static Value withPlaces(Emitter &e, Value x, const Windows &windows) {
  DimVector dims = dimsOf(x), to = {dims[0], dims[1]};
  to.append(windows.places);
  return e.reshape(x, to);
}

/// Powers beyond squares leave the range of narrower floats early.
static Type powerType(Node &n, Type element, double exponent) {
  return exponent == 1 || exponent == 2 ? wideType(n, element) : n.builder.getF64Type();
}

static double exponentOf(Node &n) {
  double p = n.opset < 2 ? n.getFloat("p", 2) : static_cast<double>(n.getInt("p", 2));
  if (!(p > 0))
    refuse("'p' is " + std::to_string(p) + ", but must be positive");
  return p;
}

static Value powerOf(Emitter &e, Value x, double exponent) {
  return exponent == 1     ? x
         : exponent == 2   ? e.mul(x, x)
         : exponent == 0.5 ? e.unary<SqrtOp>(x)
                           : e.binary<PowOp>(x, e.scalar(elementOf(x), exponent));
}

static void importLpPool(Node &n) {
  double p = exponentOf(n);
  Type element = elementOf(n.in(0)), wide = powerType(n, element, p);
  Windows windows = pooledWindows(n, n.in(0));
  Value x = n.unary<AbsOp>(n.cast(n.in(0), wide));
  Value elements = gatherWindows(n, powerOf(n, x, p), windows, n.scalar(wide, 0));
  Value sum = n.reduce<ReduceSumOp>(elements, {2}, false);
  n.set(withPlaces(n, n.cast(powerOf(n, sum, 1 / p), element), windows));
}

static void importGlobalLpPool(Node &n) {
  double p = exponentOf(n);
  Type element = elementOf(n.in(0)), wide = powerType(n, element, p);
  Value x = n.unary<AbsOp>(n.cast(n.in(0), wide));
  Value sum = n.reduce<ReduceSumOp>(powerOf(n, x, p), spatialAxes(x));
  n.set(n.cast(powerOf(n, sum, 1 / p), element));
}

Value maxPlaces(Node &n, Value x) {
  Windows windows = pooledWindows(n, x);
  DimVector dims = dimsOf(x);
  Value elements = gatherWindows(n, x, windows, n.lowest(elementOf(x)));
  Value best = n.infer<ArgMaxOp>(elements, {n.integer("axis", 2), n.flag("keep_dims", false),
                                            n.flag("last", false)}); // [n, c, places]
  // The first place inside is taken if no element is above the border's value.
  Value inside = n.cast(indexWindows(n, windows).inside, n.i32()); // [elements, places]
  Value first = n.infer<ArgMaxOp>(
      inside, {n.integer("axis", 0), n.flag("keep_dims", false), n.flag("last", false)});
  Value largest = n.reduce<ReduceMaxOp>(elements, {2}, false);
  best = n.select(n.compare<EqualOp>(largest, n.lowest(elementOf(x))), first, best);
  // The best element's number, and the place's, taken apart dimension by dimension.
  SmallVector<Value> kernel = stridesOf(n, windows.kernel), place = stridesOf(n, windows.places);
  DimVector order = windows.sizes;
  bool isColumnMajor = n.getInt("storage_order", 0);
  if (isColumnMajor)
    std::reverse(order.begin(), order.end());
  SmallVector<Value> image = stridesOf(n, order);
  if (isColumnMajor)
    std::reverse(image.begin(), image.end());
  Value number = countUp(n, elementCount(windows.places), n.i64()), index;
  auto digit = [&](Value value, Value stride, const Dim &size) {
    return n.binary<ModOp>(n.div(value, stride), sizeNumber(n, size, n.i64()));
  };
  for (size_t d = 0; d < windows.sizes.size(); ++d) {
    Value element = digit(best, kernel[d], windows.kernel[d]);
    Value start = digit(number, place[d], windows.places[d]);
    Value at = n.sub(n.add(n.mul(element, n.integerScalar(n.i64(), windows.dilations[d])),
                           n.mul(start, n.integerScalar(n.i64(), windows.strides[d]))),
                     sizeNumber(n, windows.low[d], n.i64()));
    Value part = n.mul(at, image[d]);
    index = index ? n.add(index, part) : part;
  }
  DimVector images = {dims[0], dims[1]};
  Value image0 = n.reshape(countUp(n, dims[0] * dims[1], n.i64()), images);
  Value base = n.mul(image0, sizeNumber(n, elementCount(windows.sizes), n.i64()));
  return withPlaces(n, n.add(index, n.unsqueeze(base, {2})), windows);
}

/// x along `axis` from -offset on, with zeros where there is nothing: result[i] = x[i + offset].
static Value shiftAlong(Emitter &e, Value x, int64_t axis, Value places, Value offset) {
  Value zero = e.integerScalar(e.i64(), 0), at = e.add(places, offset);
  Value size = sizeNumber(e, dimsOf(x)[axis], e.i64());
  Value fits = e.binary<AndOp>(e.compare<GreaterEqualOp>(at, zero), e.compare<LessOp>(at, size));
  // One zero after the last element serves all places, also of an empty x.
  DimVector low(rankOf(x), Dim(0)), high(low);
  high[axis] = Dim(1);
  Value padded = e.pad(x, e.scalar(elementOf(x), 0), low, high);
  return e.gather(padded, e.select(fits, at, size), axis);
}

static void importMaxUnpool(Node &n) {
  Value x = n.in(0), index = n.in(1);
  DimVector dims = dimsOf(x), to = {dims[0], dims[1]};
  size_t count = dims.size() - 2;
  Ints kernel = n.getInts("kernel_shape", {}), strides = n.getInts("strides", Ints(count, 1)),
       pads = n.getInts("pads", Ints(2 * count, 0));
  if (dims.size() < 3 || kernel.size() != count || strides.size() != count ||
      pads.size() != 2 * count)
    refuse("'kernel_shape', 'strides' and 'pads' do not fit an input of shape " + textOf(dims));
  for (size_t d = 0; d < count; ++d)
    to.push_back((dims[2 + d] - Dim(1)) * Dim(strides[d]) +
                 Dim(kernel[d] - pads[d] - pads[count + d]));
  Dim all = elementCount(to), given = elementCount(dims);
  Value flat = n.infer<ScatterElementsOp>(
      {n.full({all}, elementOf(x), 0), n.reshape(index, {given}), n.reshape(x, {given})},
      {n.integer("axis", 0), n.text("reduction", "none")});
  Value y = n.reshape(flat, to);
  if (n.has(2)) // embedded in zeros of that shape
    for (size_t d = 0; d < dims.size(); ++d) {
      Value places = countUpTo(n, elementAt(n, n.in(2), d), "output_shape");
      if (dimsOf(places)[0] != to[d])
        y = shiftAlong(n, y, d, places, n.integerScalar(n.i64(), 0));
    }
  n.set(y);
}

static void importCenterCropPad(Node &n) {
  Value x = n.in(0), shape = n.cast(n.vector(1, "shape"), n.i64());
  Ints axes =
      n.axes(n.getInts("axes", llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)))), rankOf(x));
  if (dimsOf(shape)[0].constant().value_or(axes.size()) != (int64_t)axes.size())
    refuse("'shape' has " + dimsOf(shape)[0].str() + " entries, but needs " + Twine(axes.size()));
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Value wanted = elementAt(n, shape, i), places = countUpTo(n, wanted, "shape");
    Dim from = dimsOf(x)[axis], to = dimsOf(places)[0];
    if (from == to)
      continue;
    auto less = (from - to).constant();
    if (less && *less > 0) {
      x = n.sliceAlong(x, axis, Dim(*less / 2), to);
      continue;
    }
    // Divided toward zero: floor(less / 2) elements are cropped, floor(-less / 2) are added.
    Value offset = n.div(n.sub(sizeNumber(n, from, n.i64()), wanted), n.integerScalar(n.i64(), 2));
    x = shiftAlong(n, x, axis, places, offset);
  }
  n.set(x);
}

/// image[p] = sum over the elements k of a block with p = place * stride + k * dilation - pad.
static void importCol2Im(Node &n) {
  Value x = n.in(0), shape = n.vector(1, "image_shape"), block = n.vector(2, "block_shape");
  auto entries = dimsOf(shape)[0].constant();
  if (!entries)
    entries = dimsOf(block)[0].constant();
  for (StringRef name : {"strides", "dilations", "pads"})
    if (auto given = n.getInts(name); given && !entries)
      entries = given->size() / (name == "pads" ? 2 : 1);
  if (auto rank = n.declaredRank(0); rank && !entries)
    entries = *rank - 2;
  if (!entries || rankOf(x) != 3)
    refuse("the input must have rank 3, and the number of entries of 'image_shape' must be known");
  if (*entries < 1 || *entries > kMostSpatial)
    refuse("'image_shape' has " + Twine(*entries) + " entries, but must have 1 to " +
           Twine(kMostSpatial));
  for (Value given : {shape, block})
    if (auto own = dimsOf(given)[0].constant(); own && own != entries)
      refuse("'image_shape' and 'block_shape' have " + Twine(*entries) + " and " + Twine(*own) +
             " entries, but must have as many");
  size_t count = *entries;
  Ints strides = n.getInts("strides", Ints(count, 1)), pads = n.getInts("pads", Ints(2 * count, 0));
  Ints dilations = n.getInts("dilations", Ints(count, 1));
  if (strides.size() != count || dilations.size() != count || pads.size() != 2 * count)
    refuse("'strides', 'dilations' and 'pads' do not fit " + Twine(count) + " dimensions");
  requirePositive("strides", strides);
  requirePositive("dilations", dilations);
  DimVector kernel, sizes, places;
  SmallVector<Value> ofPixel, ofElement;
  for (size_t d = 0; d < count; ++d) {
    ofElement.push_back(countUpTo(n, elementAt(n, block, d), "block_shape"));
    ofPixel.push_back(countUpTo(n, elementAt(n, shape, d), "image_shape"));
    kernel.push_back(dimsOf(ofElement[d])[0]);
    sizes.push_back(dimsOf(ofPixel[d])[0]);
    Dim reach = (kernel[d] - Dim(1)) * Dim(dilations[d]) + Dim(1);
    places.push_back((sizes[d] + Dim(pads[d] + pads[count + d]) - reach).floorDiv(Dim(strides[d])) +
                     Dim(1));
  }
  DimVector all = kernel;
  all.append(sizes);
  SmallVector<Value> elementStrides = stridesOf(n, kernel), placeStrides = stridesOf(n, places);
  Value zero = n.integerScalar(n.i64(), 0), element, place, inside;
  for (size_t d = 0; d < count; ++d) {
    Value k = n.alongAxis(ofElement[d], d, 2 * count);
    Value pixel = n.alongAxis(ofPixel[d], count + d, 2 * count);
    Value start = n.sub(n.add(pixel, n.integerScalar(n.i64(), pads[d])),
                        n.mul(k, n.integerScalar(n.i64(), dilations[d])));
    Value stride = n.integerScalar(n.i64(), strides[d]), at = n.div(start, stride);
    Value fits = n.compare<EqualOp>(n.mul(at, stride), start);
    fits = n.binary<AndOp>(fits, n.compare<GreaterEqualOp>(start, zero));
    fits = n.binary<AndOp>(fits, n.compare<LessOp>(at, sizeNumber(n, places[d], n.i64())));
    Value e = n.mul(k, elementStrides[d]), p = n.mul(n.select(fits, at, zero), placeStrides[d]);
    element = d ? n.add(element, e) : e;
    place = d ? n.add(place, p) : p;
    inside = d ? n.binary<AndOp>(inside, fits) : fits;
  }
  DimVector dims = dimsOf(x), flat = {elementCount(kernel), elementCount(sizes)};
  Dim channels = dims[1].floorDiv(flat[0]);
  Value columns = sizeNumber(n, dims[2], n.i64());
  Value index = n.reshape(n.broadcast(n.add(n.mul(element, columns), place), all), flat);
  Value gathered = n.gather(n.reshape(x, {dims[0], channels, flat[0] * dims[2]}), index, 2);
  Value kept =
      n.select(n.reshape(n.broadcast(inside, all), flat), gathered, n.scalar(elementOf(x), 0));
  DimVector to = {dims[0], channels};
  to.append(sizes);
  n.set(n.reshape(n.reduce<ReduceSumOp>(kept, {2}, false), to));
}

OpRows windowRows() {
  static const OpRow rows[] = {
      {"LpPool", "", 1, 27, importLpPool},       {"GlobalLpPool", "", 1, 27, importGlobalLpPool},
      {"MaxUnpool", "", 9, 27, importMaxUnpool}, {"CenterCropPad", "", 18, 27, importCenterCropPad},
      {"Col2Im", "", 18, 27, importCol2Im},
  };
  return rows;
}

} // namespace heddle::onnx
