// Slicing: ops that pick elements by bounds or indices, pad, or sample on another grid.

#include "compiler/onnx/Agreement.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Places.h"
#include "compiler/onnx/ops/RunTimeAxes.h"
#include "compiler/onnx/ops/algebra/Triangular.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// A bound counted from 0, as an expression that is not clamped; nullopt when its sign is not
/// known.
static std::optional<Dim> fromStart(const Dim &bound, const Dim &size) {
  if (auto number = bound.constant())
    return *number < 0 ? size + bound : bound;
  if (bound.isNeverNegative())
    return bound;
  if ((Dim(-1) - bound).isNeverNegative())
    return size + bound;
  return std::nullopt;
}

static Dim clamp(const Dim &value, const Dim &low, const Dim &high) {
  return Dim::max(low, Dim::min(value, high));
}

namespace {
struct Bounds {
  Dim start, size;
};
} // namespace

/// No size is as large: bounds beyond mean "to the end", and exporters write several such numbers.
static constexpr int64_t kBeyond = int64_t(1) << 29;

/// Steps and diagonals beyond it lead out of every tensor, and sums with them are int64.
static constexpr int64_t kLongestStep = int64_t(1) << 48;

/// ONNX's clamping of one axis.
static std::optional<Bounds> resolveBounds(const Dim &size, Dim start, Dim end, int64_t step) {
  auto isBeyond = [](const Dim &bound, bool positive) {
    auto number = bound.constant();
    return number && (positive ? *number >= kBeyond : *number <= -kBeyond);
  };
  if (step > 0) {
    auto first = isBeyond(start, false) ? Dim(0) : fromStart(start, size);
    auto last = isBeyond(end, true) ? size : fromStart(end, size);
    if (isBeyond(start, true))
      first = size;
    if (isBeyond(end, false))
      last = Dim(0);
    if (!first || !last)
      return std::nullopt;
    // A start past the end needs no clamping: nothing is taken then. A size is never negative.
    Dim low = first->isNeverNegative() ? *first : Dim::max(*first, Dim(0));
    Dim high = last->isConstant(0) || *last == size ? *last : clamp(*last, Dim(0), size);
    Dim taken = low == *first ? high - low : Dim::min(high - *first, high);
    Dim count = taken.ceilDiv(Dim(step));
    return Bounds{low,
                  low.isConstant(0) || count.isNeverNegative() ? count : Dim::max(count, Dim(0))};
  }
  auto first = isBeyond(start, true) ? size - Dim(1) : fromStart(start, size);
  auto last = isBeyond(end, false) ? Dim(-1) : fromStart(end, size);
  if (!first || !last || isBeyond(start, false))
    return std::nullopt;
  Dim high = Dim::min(*first, size - Dim(1));
  Dim low = last->isConstant(-1) ? *last : clamp(*last, Dim(-1), size - Dim(1));
  Dim count = (high - low).ceilDiv(Dim(-step));
  return Bounds{high, count.isNeverNegative() ? count : Dim::max(count, Dim(0))};
}

/// A chain of slices would double its formula with each: beyond this length the run finds the size.
static bool isLong(const Dim &dim) { return dim.isTooLarge() || dim.str().size() > 200; }

/// All axes are sliced, from one end to the other where the run names none.
static void sliceAtRunTime(Node &n) {
  Value x = n.in(0), axes = n.has(3) ? n.in(3) : n.iota(dimsOf(n.in(1)), 0, n.i64());
  int64_t rank = rankOf(x);
  RunTimeAxes places(n, axes, rank);
  Value ones = n.full(Dim(rank), n.i64(), 1);
  Value starts = places.spread(n.in(1), n.full(Dim(rank), n.i64(), 0));
  Value ends = places.spread(n.in(2), n.sizes(dimsOf(x)));
  Value steps = n.has(4) ? places.spread(n.in(4), ones) : ones;
  DimVector dims;
  for (int64_t i = 0; i < rank; ++i)
    dims.push_back(n.freshSymbol("slice"));
  n.set(n.typed<DynamicSliceOp>(n.tensor(dims, elementOf(x)), {x, starts, ends, steps},
                                {n.list("axes", llvm::to_vector(llvm::seq<int64_t>(0, rank)))}));
}

static void importSlice(Node &n) {
  Value x = n.in(0);
  int64_t rank = rankOf(x);
  bool isVague =
      n.opset >= 10 && n.isLate(1) && n.isLate(2) && !dimsOf(n.vector(1, "starts"))[0].constant();
  if (n.isLate(3) || n.isLate(4) || isVague)
    return sliceAtRunTime(n);
  std::optional<DimVector> starts, ends;
  if (n.opset < 10) {
    Ints first = n.getInts("starts", {}), last = n.getInts("ends", {});
    starts = DimVector(first.begin(), first.end());
    ends = DimVector(last.begin(), last.end());
  } else {
    starts = n.sizesFrom(1);
    ends = n.sizesFrom(2);
  }
  size_t count = starts ? starts->size()
                 : ends ? ends->size()
                        : *dimsOf(n.vector(1, "starts"))[0].constant();
  if (count > size_t(rank))
    refuse("'starts' has " + Twine(count) + " entries for rank " + Twine(rank));
  Ints all = llvm::to_vector(llvm::seq<int64_t>(0, count));
  Ints axes = n.axes(n.intsFrom(3, "axes").value_or(all), rank);
  Ints steps = n.has(4) ? *n.intsFrom(4, "steps") : Ints(count, 1);
  if (axes.size() != count || steps.size() != count ||
      (starts && ends && starts->size() != ends->size()))
    refuse("'starts', 'ends', 'axes' and 'steps' have different lengths");
  DimVector first(rank, Dim(0)), sizes = dimsOf(x);
  Ints strides(rank, 1);
  bool isStatic = starts && ends;
  for (size_t i = 0; i < count && isStatic; ++i) {
    if (steps[i] == 0)
      refuse("a step is 0");
    steps[i] = std::clamp(steps[i], -kLongestStep, kLongestStep);
    auto bounds = resolveBounds(sizes[axes[i]], (*starts)[i], (*ends)[i], steps[i]);
    isStatic = bounds && !isLong(bounds->start) && !isLong(bounds->size);
    if (!isStatic)
      break;
    first[axes[i]] = bounds->start;
    sizes[axes[i]] = bounds->size;
    strides[axes[i]] = steps[i];
  }
  if (isStatic)
    return n.set(n.slice(x, first, sizes, strides));
  DimVector dims = dimsOf(x);
  for (int64_t axis : axes)
    dims[axis] = n.freshSymbol("slice");
  auto bound = [&](const std::optional<DimVector> &known, size_t i) {
    return known ? n.sizes(*known) : n.cast(n.in(i), n.i64());
  };
  n.set(n.typed<DynamicSliceOp>(n.tensor(dims, elementOf(x)),
                                {x, bound(starts, 1), bound(ends, 2), n.integers(steps)},
                                {n.list("axes", axes)}));
}

static void importGather(Node &n) {
  n.set(n.gather(n.in(0), n.in(1), n.axis(n.getInt("axis", 0), rankOf(n.in(0)))));
}

static void importGatherElements(Node &n) {
  int64_t axis = n.axis(n.getInt("axis", 0), rankOf(n.in(0)));
  n.set(n.infer<GatherElementsOp>({n.in(0), n.in(1)}, {n.integer("axis", axis)}));
}

/// Index tuples whose length the model leaves open, but the ranks tell.
static Value tuplesOf(Node &n, Value indices, int64_t length) {
  DimVector dims = dimsOf(indices);
  if (dims.empty() || dims.back().constant())
    return indices;
  dims.back() = Dim(length);
  return n.reshape(indices, dims);
}

static void importGatherNd(Node &n) {
  Value indices = n.in(1);
  int64_t batch = n.getInt("batch_dims", 0), most = rankOf(n.in(0)) - batch;
  if (auto declared = n.declaredRank(0))
    indices = tuplesOf(n, indices, most + rankOf(indices) - 1 - *declared);
  else if (most == 1) // no tuple is empty
    indices = tuplesOf(n, indices, 1);
  else if (rankOf(indices) > 0 && !dimsOf(indices).back().constant())
    refuse("the rank of the result is not known when the model is compiled",
           "give the last size of 'indices' a number, or declare the rank of the result in "
           "value_info");
  n.set(n.infer<GatherNdOp>({n.in(0), indices}, {n.integer("batch_dims", batch)}));
}

static NamedAttribute reductionOf(Node &n) {
  std::string name = n.getText("reduction", "none");
  if (!llvm::is_contained({"none", "add", "mul", "max", "min"}, name))
    refuse("'reduction' is '" + name + "', but must be 'none', 'add', 'mul', 'max' or 'min'");
  return n.text("reduction", name);
}

static void importScatterElements(Node &n) {
  int64_t axis = n.axis(n.getInt("axis", 0), rankOf(n.in(0)));
  n.set(n.infer<ScatterElementsOp>({n.in(0), n.in(1), n.in(2)},
                                   {n.integer("axis", axis), reductionOf(n)}));
}

static void importScatterNd(Node &n) {
  int64_t length = rankOf(n.in(0)) + rankOf(n.in(1)) - 1 - rankOf(n.in(2));
  if (length < 0 || length > rankOf(n.in(0)))
    refuse("'updates' has rank " + Twine(rankOf(n.in(2))) + ", but needs one from " +
           Twine(rankOf(n.in(1)) - 1) + " to " + Twine(rankOf(n.in(0)) + rankOf(n.in(1)) - 1));
  n.set(n.infer<ScatterNdOp>({n.in(0), tuplesOf(n, n.in(1), length), n.in(2)}, {reductionOf(n)}));
}

static void importPad(Node &n) {
  Value x = n.in(0);
  int64_t rank = rankOf(x);
  DimVector pads;
  if (n.opset < 11) {
    Ints given = n.getInts(n.opset < 2 ? "paddings" : "pads", {});
    pads.assign(given.begin(), given.end());
  } else if (n.isLate(3)) {
    // All dimensions are padded, by 0 if the run names none.
    RunTimeAxes places(n, n.in(3), rank);
    Dim half = elementCount(dimsOf(n.in(3)));
    Value none = n.full(Dim(rank), n.i64(), 0);
    Value before = places.spread(n.sliceAlong(n.in(1), 0, Dim(0), half), none);
    Value after = places.spread(n.sliceAlong(n.in(1), 0, half, half), none);
    pads = n.bindOffsets(n.concat({before, after}, 0), "pads");
  } else {
    // Without axes there are two amounts a dimension, whatever the length of a late vector is.
    Value given = n.vector(1, "pads");
    if (!n.has(3) && !dimsOf(given)[0].constant())
      given = n.reshape(given, {Dim(2 * rank)});
    pads = n.bindOffsets(given, "pads");
  }
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (n.has(3) && !n.isLate(3))
    axes = n.axes(*n.intsFrom(3, "axes"), rank);
  if (pads.size() != 2 * axes.size())
    refuse("'pads' has " + Twine(pads.size()) + " entries, but needs " + Twine(2 * axes.size()));
  DimVector low(rank, Dim(0)), high(rank, Dim(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    low[axes[i]] = pads[i];
    high[axes[i]] = pads[axes.size() + i];
  }
  Value value = n.has(2) ? n.reshape(n.in(2), {}) : n.scalar(elementOf(x), n.getFloat("value", 0));
  std::string mode = n.getText("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    refuse("'mode' is '" + mode + "', but must be 'constant', 'edge', 'reflect' or 'wrap'");
  n.set(n.pad(x, value, low, high, mode));
}

static void importOneHot(Node &n) {
  std::optional<DimVector> depth;
  if (auto number = n.floatsFrom(1)) {
    if (!((*number)[0] >= 0 && (*number)[0] < 0x1p47))
      refuse("'depth' is " + std::to_string((*number)[0]) + ", but must be from 0 to 2^47");
    depth = DimVector{Dim(static_cast<int64_t>((*number)[0]))};
  } else {
    depth = n.bindSizes(n.cast(n.reshape(n.in(1), {}), n.i64()), "depth");
  }
  DimVector dims = dimsOf(n.in(0));
  int64_t axis = n.axis(n.getInt("axis", -1), dims.size() + 1);
  Value indices = n.in(0), zero = n.integerScalar(n.i64(), 0);
  if (elementOf(indices).isUnsignedInteger(64)) // so that none becomes a negative one
    indices = n.binary<MinOp>(
        indices, n.integerScalar(elementOf(indices), std::numeric_limits<int64_t>::max()));
  indices = n.cast(indices, n.i64());
  Value wrapped = n.add(indices, n.size((*depth)[0]));
  indices = n.select(n.compare<LessOp>(indices, zero), wrapped, indices);
  dims.insert(dims.begin() + axis, (*depth)[0]);
  Value isHot = n.compare<EqualOp>(n.iota(dims, axis, n.i64()), n.unsqueeze(indices, {axis}));
  auto value = [&](int64_t i) { return n.reshape(n.sliceAlong(n.in(2), 0, Dim(i), Dim(1)), {}); };
  n.set(n.select(isHot, value(1), value(0)));
}

static void importTopK(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  int64_t axis = n.axis(n.getInt("axis", -1), dims.size());
  Dim count = n.opset < 10 ? Dim(n.getInt("k", 0)) : n.bindSizes(n.reshape(n.in(1), {}), "k")[0];
  if (dims[axis].constant() && count.constant().value_or(0) > *dims[axis].constant())
    refuse("'k' is " + count.str() + ", but the axis has size " + dims[axis].str());
  if (n.opset >= 10 && (!count.constant() || !dims[axis].constant()))
    requireAtMost(n, count, dims[axis], "'k' is %lld, but the axis has size %lld");
  auto [values, indices] = topK(n, x, axis, count, n.getInt("largest", 1));
  n.set(0, values);
  if (n.wants(1))
    n.set(1, indices);
}

namespace {
/// Row and column numbers of the last two dimensions, of 32 bits where they fit: a vector has twice
/// as many of these. Diagonals of `most` or more, and of as much below 0, are beyond the matrix.
struct Places {
  Places(Node &n, ArrayRef<Dim> dims) : n(n) {
    if (dims.size() < 2)
      refuse("the input must have rank 2 or more");
    ArrayRef<Dim> matrix = dims.take_back(2);
    constexpr int64_t kMostShort = int64_t(1) << 30;
    bool isShort = llvm::all_of(
        matrix, [](const Dim &dim) { return dim.constant().value_or(INT64_MAX) <= kMostShort; });
    most = isShort ? kMostShort : kLongestStep;
    type = isShort ? n.builder.getI32Type() : n.i64();
    row = n.iota(matrix, 0, type);
    column = n.iota(matrix, 1, type);
  }

  /// The rows' numbers and a diagonal's, an i64.
  Value shifted(Value diagonal) {
    double bound = most;
    return n.add(row, n.cast(n.min(n.max(diagonal, -bound), bound), type));
  }

  Node &n;
  int64_t most;
  Type type;
  Value row, column;
};
} // namespace

Value triangular(Node &n, Value x, bool isUpper, Value diagonal) {
  Places at(n, dimsOf(x));
  Value limit = diagonal ? at.shifted(diagonal) : at.row;
  Value keeps = isUpper ? n.compare<GreaterEqualOp>(at.column, limit)
                        : n.compare<LessEqualOp>(at.column, limit);
  return n.select(keeps, x, n.scalar(elementOf(x), 0));
}

static void importTrilu(Node &n) {
  Value diagonal = n.has(1) ? n.cast(n.reshape(n.in(1), {}), n.i64()) : Value();
  n.set(triangular(n, n.in(0), n.getInt("upper", 1), diagonal));
}

static void importEyeLike(Node &n) {
  Places at(n, dimsOf(n.in(0)));
  Value shifted = at.shifted(n.integerScalar(n.i64(), n.getInt("k", 0)));
  n.set(n.cast(n.compare<EqualOp>(at.column, shifted), n.getElement("dtype", elementOf(n.in(0)))));
}

static void importReverseSequence(Node &n) {
  n.set(n.infer<ReverseSequenceOp>({n.in(0), n.in(1)},
                                   {n.integer("time_axis", n.getInt("time_axis", 0)),
                                    n.integer("batch_axis", n.getInt("batch_axis", 1))}));
}

/// The experimental Crop: `border` left, top, right, bottom of the last two dimensions, or `scale`
/// (height, width).
static void importCrop(Node &n) {
  Value x = n.in(0);
  Ints border = n.getInts("border", {}), scale = n.getInts("scale", {});
  if (rankOf(x) != 4 || border.size() != 4 || (!scale.empty() && scale.size() != 2))
    refuse("the input must have rank 4, 'border' four entries and 'scale' two or none");
  DimVector starts(4, Dim(0)), sizes = dimsOf(x);
  starts[2] = Dim(border[1]);
  starts[3] = Dim(border[0]);
  sizes[2] = scale.empty() ? sizes[2] - Dim(border[1] + border[3]) : Dim(scale[0]);
  sizes[3] = scale.empty() ? sizes[3] - Dim(border[0] + border[2]) : Dim(scale[1]);
  n.set(n.slice(x, starts, sizes, {1, 1, 1, 1}));
}

OpRows slicingRows() {
  static const OpRow rows[] = {
      {"Slice", "", 1, 27, importSlice, true},
      {"Gather", "", 1, 27, importGather, true},
      {"GatherElements", "", 11, 27, importGatherElements, true},
      {"GatherND", "", 11, 27, importGatherNd, true},
      {"ScatterElements", "", 11, 27, importScatterElements},
      {"Scatter", "", 9, 10, importScatterElements},
      {"ScatterND", "", 11, 27, importScatterNd},
      {"Pad", "", 1, 27, importPad},
      {"OneHot", "", 9, 27, importOneHot},
      {"TopK", "", 1, 27, importTopK},
      {"Trilu", "", 14, 27, importTrilu},
      {"Trilu", kMicrosoft, 1, 1, importTrilu},
      {"EyeLike", "", 9, 27, importEyeLike},
      {"ReverseSequence", "", 10, 27, importReverseSequence},
      {"Crop", "", 1, 27, importCrop, false, "experimental"},
  };
  return rows;
}

} // namespace heddle::onnx
