// Regions: RoiAlign, DeformConv and their kin, which sample an image where other tensors say.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/Walk.h"
#include "compiler/onnx/ops/vision/Sampling.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
/// One side of all regions, f32 [regions, 1].
struct Side {
  Value start, bin; // the region's begin, and the length of one result's part
  Value samples;    // i64 [regions, 1]: how many in a part
};
/// The two pixels around one sample a region and part, [regions, parts].
struct Neighbours {
  Value low, high, lowWeight, highWeight, inside;
};
} // namespace

/// Limit of samples along a side, so that a product of two is an i64; far more than a run carries
/// out.
static constexpr double kMostSamples = 1 << 30;

static Side readSide(Node &n, Value rois, int64_t column, int64_t parts, Type element) {
  double scale = n.getFloat("spatial_scale", 1);
  std::string mode = n.getText("coordinate_transformation_mode",
                               n.opset < 16 ? "output_half_pixel" : "half_pixel");
  if (mode != "half_pixel" && mode != "output_half_pixel")
    refuse("'coordinate_transformation_mode' is '" + mode +
           "', but must be 'half_pixel' or 'output_half_pixel'");
  bool isHalf = mode == "half_pixel";
  auto edge = [&](int64_t i) {
    Value edge = n.mul(n.cast(n.sliceAlong(rois, 1, Dim(i), Dim(1)), element), scale);
    return isHalf ? n.add(edge, -0.5) : edge;
  };
  Side side;
  side.start = edge(column);
  Value length = n.sub(edge(column + 2), side.start);
  if (!isHalf)
    length = n.max(length, 1);
  side.bin = n.div(length, static_cast<double>(parts));
  int64_t ratio = n.getInt("sampling_ratio", 0);
  side.samples = ratio > 0
                     ? n.broadcast(n.integerScalar(n.i64(), ratio), dimsOf(side.bin))
                     : n.cast(n.min(n.max(n.unary<CeilOp>(side.bin), 0), kMostSamples), n.i64());
  return side;
}

/// Sample `number` (i64 [regions, 1]) of every part along one side of an image of `size` pixels.
static Neighbours neighbours(Node &n, const Side &side, Value number, const Dim &parts,
                             const Dim &size) {
  Type element = elementOf(side.start);
  Value zero = n.scalar(element, 0), pixels = sizeNumber(n, size, element);
  Value last = n.add(pixels, -1);
  Value count = n.max(n.cast(side.samples, element), 1);
  Value within = n.div(n.add(n.cast(number, element), 0.5), count);
  Value part = n.add(countUp(n, parts, element), within); // [regions, parts]
  Value place = n.add(side.start, n.mul(part, side.bin));
  Neighbours result;
  result.inside = n.binary<AndOp>(n.compare<GreaterEqualOp>(place, n.scalar(element, -1)),
                                  n.compare<LessEqualOp>(place, pixels));
  place = clampTo(n, place, zero, last);
  Value low = n.unary<FloorOp>(place);
  Value fraction = n.sub(place, low);
  result.low = n.cast(low, n.i64());
  result.high = n.cast(n.binary<MinOp>(n.add(low, 1), last), n.i64());
  result.lowWeight = n.sub(n.scalar(element, 1), fraction);
  result.highWeight = fraction;
  return result;
}

namespace {
struct RoiPool {
  Value pixels; // [batch, height * width, channels]
  Value batch;  // i64 [regions, 1, 1, 1]
  Dim height, width, rows, columns;
  bool isMax = false;
};
} // namespace

/// Pixels for a sampling of `image`, [batch, channels, height, width], at parts of regions.
static RoiPool poolOf(Node &n, Value image, Value batch, const Dim &rows, const Dim &columns) {
  DimVector dims = dimsOf(image);
  Value flat = n.reshape(n.cast(image, wideType(n, elementOf(image))),
                         {dims[0], dims[1], dims[2] * dims[3]});
  return {n.transpose(flat, {0, 2, 1}),
          n.unsqueeze(n.cast(batch, n.i64()), {1, 2, 3}),
          dims[2],
          dims[3],
          rows,
          columns};
}

/// The pixels at a row and a column (i64 [regions, parts]) of each part: [regions, rows, columns,
/// channels].
static Value pixelsAt(Node &n, const RoiPool &pool, Value row, Value column) {
  DimVector dims = {dimsOf(pool.batch)[0], pool.rows, pool.columns, Dim(1)};
  Value width = sizeNumber(n, pool.width, n.i64());
  Value at = n.add(n.mul(n.unsqueeze(row, {2}), width), n.unsqueeze(column, {1}));
  Value tuple =
      n.concat({n.broadcast(pool.batch, dims), n.broadcast(n.unsqueeze(at, {3}), dims)}, 3);
  return n.infer<GatherNdOp>({pool.pixels, tuple}, {n.integer("batch_dims", 0)});
}

/// The four pixels around each sample, weighted.
static Value sampleBetween(Node &n, const RoiPool &pool, const Neighbours &row,
                           const Neighbours &column) {
  Value total;
  for (bool isLow : {true, false})
    for (bool isLeft : {true, false}) {
      Value corner =
          pixelsAt(n, pool, isLow ? row.low : row.high, isLeft ? column.low : column.high);
      Value weight = n.mul(n.unsqueeze(isLow ? row.lowWeight : row.highWeight, {2}),
                           n.unsqueeze(isLeft ? column.lowWeight : column.highWeight, {1}));
      Value value = n.mul(corner, n.unsqueeze(weight, {3}));
      total = !total ? value : pool.isMax ? n.binary<MaxOp>(total, value) : n.add(total, value);
    }
  return total;
}

/// `value` where row and column lie inside of the image.
static Value insideOr(Node &n, const Neighbours &row, const Neighbours &column, Value value,
                      double outside) {
  Value inside = n.binary<AndOp>(n.unsqueeze(row.inside, {2}), n.unsqueeze(column.inside, {1}));
  return n.select(n.unsqueeze(inside, {3}), value, n.scalar(elementOf(value), outside));
}

/// Every region's sample `number` in all parts: [regions, rows, columns, channels].
static Value sampleRegions(Node &n, const RoiPool &pool, const Side &y, const Side &x,
                           Value number) {
  Value across = n.max(x.samples, 1);
  Neighbours row = neighbours(n, y, n.div(number, across), pool.rows, pool.height);
  Neighbours column = neighbours(n, x, n.binary<ModOp>(number, across), pool.columns, pool.width);
  return insideOr(n, row, column, sampleBetween(n, pool, row, column), 0);
}

static void importRoiAlign(Node &n) {
  Value image = n.in(0), rois = n.in(1);
  Type element = elementOf(image), wide = wideType(n, element);
  DimVector dims = dimsOf(image);
  if (dims.size() != 4 || rankOf(rois) != 2 || rankOf(n.in(2)) != 1)
    refuse("the ranks must be 4, 2 and 1, but are " + Twine(dims.size()) + ", " +
           Twine(rankOf(rois)) + " and " + Twine(rankOf(n.in(2))));
  std::string mode = n.getText("mode", "avg");
  int64_t rows = n.getInt("output_height", 1), columns = n.getInt("output_width", 1);
  if ((mode != "avg" && mode != "max") || rows < 1 || columns < 1)
    refuse("'mode' must be 'avg' or 'max', and the output's sizes at least 1");
  Dim regions = dimsOf(rois)[0];
  RoiPool pool = poolOf(n, image, n.reshape(n.in(2), {regions}), rows, columns);
  pool.isMax = mode == "max";
  Side y = readSide(n, rois, 1, rows, wide), x = readSide(n, rois, 0, columns, wide);

  // Regions have different numbers of samples: the loop ends with the largest.
  Value counts = n.mul(y.samples, x.samples);
  Value trips = n.reduce<ReduceMaxOp>(counts, {0, 1}, false);
  trips = n.binary<MaxOp>(trips, n.integerScalar(n.i64(), 0));
  // Boxes come from the input: what they cost is bounded by the size of the image.
  Value most = n.size(dims[2] * dims[3] * Dim(16) + Dim(65536));
  n.requireNotNegative(
      n.sub(most, trips),
      "a part of a region has more samples than 16 a pixel of the image and 65536; "
      "the rest is %lld");
  DimVector to = {regions, pool.rows, pool.columns, dims[1]};
  Value start = n.full(to, wide, pool.isMax ? -INFINITY : 0);
  auto round = [&](Value iteration, ArrayRef<Value> states) -> SmallVector<Value> {
    Value number = n.broadcast(iteration, dimsOf(counts));
    Value value = sampleRegions(n, pool, y, x, number);
    Value next = pool.isMax ? n.binary<MaxOp>(states[0], value) : n.add(states[0], value);
    Value counted = n.unsqueeze(n.compare<LessOp>(number, counts), {2, 3});
    return {n.select(counted, next, states[0])};
  };
  Value y0 = repeat(n, trips, start, round)[0];
  Value divisor = n.unsqueeze(n.max(counts, 1), {2, 3}), zero = n.scalar(wide, 0);
  if (pool.isMax) // a region without samples gives 0
    y0 = n.select(n.compare<GreaterOp>(n.unsqueeze(counts, {2, 3}), n.integerScalar(n.i64(), 0)),
                  y0, zero);
  else
    y0 = n.div(y0, n.cast(divisor, wide));
  n.set(n.cast(n.transpose(y0, {0, 3, 1, 2}), element));
}

/// The integer nearest to x, halves away from zero.
static Value roundAway(Emitter &e, Value x) {
  Value height = e.unary<AbsOp>(x), whole = e.unary<FloorOp>(height);
  Value isUp = e.compare<GreaterEqualOp>(e.sub(height, whole), e.scalar(elementOf(x), 0.5));
  whole = e.select(isUp, e.add(whole, 1), whole);
  return e.select(e.compare<LessOp>(x, e.scalar(elementOf(x), 0)), e.unary<NegOp>(whole), whole);
}

/// Source coordinates of a row (or column) of each crop; its edges are fractions of the image's
/// size.
static Neighbours cropPlaces(Node &n, Value rois, int64_t column, const Dim &parts, const Dim &size,
                             bool isNearest) {
  Type element = elementOf(rois);
  Value last = n.add(sizeNumber(n, size, element), -1), count = sizeNumber(n, parts, element);
  auto edge = [&](int64_t i) { return n.sliceAlong(rois, 1, Dim(i), Dim(1)); };
  Value start = edge(column), end = edge(column + 2);
  Value step = n.div(n.mul(n.sub(end, start), last), n.max(n.add(count, -1), 1));
  Value place = n.add(n.mul(start, last), n.mul(countUp(n, parts, element), step));
  Value middle = n.mul(n.mul(n.add(start, end), 0.5), last);
  place = n.select(n.compare<EqualOp>(count, n.scalar(element, 1)), middle, place);
  Neighbours result;
  Value zero = n.scalar(element, 0);
  result.inside =
      n.binary<AndOp>(n.compare<GreaterEqualOp>(place, zero), n.compare<LessEqualOp>(place, last));
  place = n.select(result.inside, place, zero);
  Value low = isNearest ? roundAway(n, place) : n.unary<FloorOp>(place);
  result.low = n.cast(low, n.i64());
  result.high = n.cast(n.unary<CeilOp>(place), n.i64());
  result.highWeight = n.sub(place, low);
  result.lowWeight = n.sub(n.scalar(element, 1), result.highWeight);
  return result;
}

/// Operands: image, regions (top, left, bottom and right edge, 1 the last pixel), their images, the
/// crops' height and width.
static void importCropAndResize(Node &n) {
  Value image = n.in(0), rois = n.in(1);
  DimVector dims = dimsOf(image);
  std::string mode = n.getText("mode", "bilinear");
  if (dims.size() != 4 || rankOf(rois) != 2 || rankOf(n.in(2)) != 1)
    refuse("the ranks must be 4, 2 and 1, but are " + Twine(dims.size()) + ", " +
           Twine(rankOf(rois)) + " and " + Twine(rankOf(n.in(2))));
  if (mode != "bilinear" && mode != "nearest")
    refuse("'mode' is '" + mode + "', but must be 'bilinear' or 'nearest'");
  if (rankOf(n.in(3)) != 1 || dimsOf(n.in(3))[0].constant().value_or(2) != 2)
    refuse("'crop_size' must have 2 elements, but has the shape " + textOf(dimsOf(n.in(3))));
  DimVector crop = n.bindSizes(n.reshape(n.in(3), {Dim(2)}), "crop");
  Type element = elementOf(image), wide = wideType(n, element);
  RoiPool pool = poolOf(n, image, n.reshape(n.in(2), {dimsOf(rois)[0]}), crop[0], crop[1]);
  rois = n.cast(rois, wide);
  bool isNearest = mode == "nearest";
  Neighbours row = cropPlaces(n, rois, 0, crop[0], dims[2], isNearest);
  Neighbours column = cropPlaces(n, rois, 1, crop[1], dims[3], isNearest);
  Value y =
      isNearest ? pixelsAt(n, pool, row.low, column.low) : sampleBetween(n, pool, row, column);
  y = insideOr(n, row, column, y, n.getFloat("extrapolation_value", 0));
  n.set(n.cast(n.transpose(y, {0, 3, 1, 2}), element));
}

namespace {
/// The pixels of each part of each region along one side, i64 [regions, parts].
struct PixelRange {
  Value start, count;
};
} // namespace

static PixelRange pixelRange(Node &n, Value rois, int64_t column, int64_t parts, const Dim &size) {
  Type element = elementOf(rois);
  double scale = n.getFloat("spatial_scale", 1);
  auto edge = [&](int64_t i) {
    Value place = n.mul(n.sliceAlong(rois, 1, Dim(i), Dim(1)), scale);
    return roundAway(n, n.min(n.max(place, -kMostSamples), kMostSamples));
  };
  Value start = edge(column);
  Value length = n.max(n.add(n.sub(edge(column + 2), start), 1), 1);
  Value bin = n.div(length, static_cast<double>(parts)), number = countUp(n, Dim(parts), element);
  Value zero = n.scalar(element, 0), last = sizeNumber(n, size, element);
  auto clamped = [&](Value x) { return n.cast(clampTo(n, n.add(x, start), zero, last), n.i64()); };
  Value low = clamped(n.unary<FloorOp>(n.mul(number, bin)));
  Value high = clamped(n.unary<CeilOp>(n.mul(n.add(number, 1), bin)));
  return {low, n.max(n.sub(high, low), 0)};
}

/// The largest pixel of each part of each region; one pixel of every part at a time.
static void importMaxRoiPool(Node &n) {
  Value image = n.in(0), rois = n.in(1);
  Type element = elementOf(image), wide = wideType(n, element);
  DimVector dims = dimsOf(image);
  Ints parts = n.getInts("pooled_shape", {});
  if (dims.size() != 4 || rankOf(rois) != 2 || parts.size() != 2 || parts[0] < 1 || parts[1] < 1)
    refuse("the ranks must be 4 and 2, and 'pooled_shape' two sizes of at least 1");
  if (dimsOf(rois)[1].constant().value_or(5) != 5)
    refuse("the regions must be [regions, 5], but are " + textOf(dimsOf(rois)));
  Dim regions = dimsOf(rois)[0];
  rois = n.cast(rois, wide);
  PixelRange y = pixelRange(n, rois, 2, parts[0], dims[2]);
  PixelRange x = pixelRange(n, rois, 1, parts[1], dims[3]);
  DimVector places = {regions, Dim(parts[0]), Dim(parts[1]), Dim(1)};
  auto perPart = [&](Value value, int64_t axis) {
    return n.unsqueeze(n.unsqueeze(value, {axis}), {3});
  };
  Value batch = n.reshape(n.cast(n.sliceAlong(rois, 1, Dim(0), Dim(1)), n.i64()), {regions});
  batch = n.broadcast(n.unsqueeze(batch, {1, 2, 3}), places);
  Value pixels = n.reshape(n.cast(image, wide), {dims[0], dims[1], dims[2] * dims[3]});
  pixels = n.transpose(pixels, {0, 2, 1});
  Value none = n.integerScalar(n.i64(), 0), width = sizeNumber(n, dims[3], n.i64());
  auto most = [&](Value counts) {
    return n.binary<MaxOp>(n.reduce<ReduceMaxOp>(counts, {0, 1}, false), none);
  };
  Value across = most(x.count), trips = n.mul(most(y.count), across);
  auto round = [&](Value iteration, ArrayRef<Value> states) -> SmallVector<Value> {
    Value row = n.div(iteration, across), column = n.binary<ModOp>(iteration, across);
    Value hasRow = n.compare<LessOp>(row, y.count), hasColumn = n.compare<LessOp>(column, x.count);
    Value inside = n.binary<AndOp>(perPart(hasRow, 2), perPart(hasColumn, 1));
    Value at =
        n.add(n.mul(perPart(n.add(y.start, row), 2), width), perPart(n.add(x.start, column), 1));
    Value tuple = n.concat({batch, n.broadcast(n.select(inside, at, none), places)}, 3);
    Value value = n.infer<GatherNdOp>({pixels, tuple}, {n.integer("batch_dims", 0)});
    Value isNext = n.binary<AndOp>(inside, n.compare<GreaterOp>(value, states[0]));
    return {n.select(isNext, value, states[0])};
  };
  DimVector to = {regions, Dim(parts[0]), Dim(parts[1]), dims[1]};
  Value best = repeat(n, trips, n.full(to, wide, -INFINITY), round)[0];
  Value isEmpty = n.compare<EqualOp>(n.mul(perPart(y.count, 2), perPart(x.count, 1)), none);
  best = n.select(isEmpty, n.scalar(wide, 0), best);
  n.set(n.cast(n.transpose(best, {0, 3, 1, 2}), element));
}

/// A convolution whose window's elements are moved by offsets, and weighted by a mask.
static void importDeformConv(Node &n) {
  Value x = n.in(0), w = n.in(1), offset = n.in(2);
  Type element = elementOf(x), wide = wideType(n, element);
  DimVector dims = dimsOf(x), filter = dimsOf(w), moved = dimsOf(offset);
  int64_t count = dims.size() - 2;
  if (count < 1 || filter.size() != dims.size() || moved.size() != dims.size())
    refuse("input, filters and offsets must have one rank, at least 3");
  Ints strides = n.getInts("strides", Ints(count, 1)), pads = n.getInts("pads", Ints(2 * count, 0)),
       dilations = n.getInts("dilations", Ints(count, 1));
  if ((int64_t)strides.size() != count || (int64_t)dilations.size() != count ||
      (int64_t)pads.size() != 2 * count)
    refuse("'strides', 'dilations' and 'pads' do not fit " + Twine(count) + " dimensions");
  requirePositive("strides", strides);
  requirePositive("dilations", dilations);
  Dim groups(n.getInt("group", 1)), parts(n.getInt("offset_group", 1));
  if (*groups.constant() < 1 || *parts.constant() < 1)
    refuse("'group' and 'offset_group' must be at least 1");
  DimVector kernel(filter.begin() + 2, filter.end()), places(moved.begin() + 2, moved.end());
  Dim window = elementCount(kernel), spots = elementCount(places), batch = dims[0];

  // Coordinates of each element of each window: [batch * parts, kernel..., places...].
  DimVector grid = kernel;
  grid.append(places);
  Value split = n.reshape(n.cast(offset, wide), {batch * parts, window, Dim(count), spots});
  DimVector full = {batch * parts};
  full.append(grid);
  SmallVector<Value> coordinates;
  for (int64_t d = 0; d < count; ++d) {
    Value tap = n.mul(n.cast(n.iota(grid, d, n.i64()), wide), dilations[d]);
    Value place = n.mul(n.cast(n.iota(grid, count + d, n.i64()), wide), strides[d]);
    Value base = n.add(n.add(tap, place), -static_cast<double>(pads[d]));
    Value shift = n.reshape(n.sliceAlong(split, 2, Dim(d), Dim(1)), full);
    coordinates.push_back(n.reshape(n.add(shift, base), {batch * parts, window * spots}));
  }
  DimVector image = {batch * parts, dims[1].floorDiv(parts)};
  image.append(dims.begin() + 2, dims.end());
  Value values = sampleImage(n, n.reshape(n.cast(x, wide), image), coordinates, SampleRule());
  if (n.has(4)) {
    Value mask = n.reshape(n.cast(n.in(4), wide), {batch * parts, Dim(1), window * spots});
    values = n.mul(values, mask);
  }
  Dim summed = filter[1] * window;
  Value rows = n.reshape(n.cast(w, wide), {Dim(1), groups, filter[0].floorDiv(groups), summed});
  Value y = n.matmul(rows, n.reshape(values, {batch, groups, summed, spots}));
  DimVector to = {batch, filter[0]};
  to.append(places);
  y = n.reshape(y, to);
  if (n.has(3))
    y = addChannelBias(n, y, n.cast(n.in(3), wide));
  n.set(n.cast(y, element));
}

OpRows regionRows() {
  static const OpRow rows[] = {
      {"RoiAlign", "", 10, 27, importRoiAlign},
      {"MaxRoiPool", "", 1, 27, importMaxRoiPool},
      {"DeformConv", "", 19, 27, importDeformConv},
      {"CropAndResize", kMicrosoft, 1, 1, importCropAndResize},
  };
  return rows;
}

} // namespace heddle::onnx
