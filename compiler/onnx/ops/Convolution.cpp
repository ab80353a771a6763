// Convolution: convolutions, pools, and the paddings that they name in four ways.

#include "compiler/onnx/Agreement.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/Unfold.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Ints spatialAxes(Value x, bool channelsLast) {
  if (rankOf(x) < 3)
    refuse("the input must have rank 3 or more, but has " + Twine(rankOf(x)));
  int64_t first = channelsLast ? 1 : 2;
  return llvm::to_vector(llvm::seq<int64_t>(first, first + rankOf(x) - 2));
}

static Ints spatialInts(Node &n, StringRef name, size_t count, int64_t otherwise) {
  Ints values = n.getInts(name, Ints(count, otherwise));
  if (values.size() != count)
    refuse("'" + name + "' has " + Twine(values.size()) + " entries, but needs " + Twine(count));
  return values;
}

/// Padding that makes the result ceil(size / stride) long; symbolic where the size is.
static void padSame(Window &window, ArrayRef<Dim> sizes, bool isUpper) {
  window.symbolicLow.assign(sizes.size(), Dim(0));
  window.symbolicHigh.assign(sizes.size(), Dim(0));
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim stride(window.strides[i]),
        reach = (window.size[i] - Dim(1)) * Dim(window.dilations[i]) + Dim(1);
    Dim total = (sizes[i].ceilDiv(stride) - Dim(1)) * stride + reach - sizes[i];
    if (!total.isNeverNegative())
      total = Dim::max(total, Dim(0));
    Dim less = total.floorDiv(Dim(2)), more = total - less;
    (isUpper ? window.symbolicLow : window.symbolicHigh)[i] = less;
    (isUpper ? window.symbolicHigh : window.symbolicLow)[i] = more;
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    auto low = window.symbolicLow[i].constant(), high = window.symbolicHigh[i].constant();
    if (!low || !high)
      continue;
    window.low[i] = *low;
    window.high[i] = *high;
    window.symbolicLow[i] = window.symbolicHigh[i] = Dim(0);
  }
}

void requirePositive(StringRef name, ArrayRef<int64_t> values) {
  for (int64_t value : values)
    if (value < 1)
      refuse("'" + name + "' has the entry " + Twine(value) + ", but all must be at least 1");
}

Window readWindow(Node &n, DimVector size, ArrayRef<Dim> sizes) {
  size_t count = sizes.size();
  Window window;
  window.size = std::move(size);
  window.strides = spatialInts(n, "strides", count, 1);
  window.dilations = spatialInts(n, "dilations", count, 1);
  if (window.size.size() != count)
    refuse("'kernel_shape' has " + Twine(window.size.size()) + " entries, but needs " +
           Twine(count));
  for (size_t i = 0; i < count; ++i)
    if (window.strides[i] < 1 || window.dilations[i] < 1 ||
        window.size[i].constant().value_or(1) < 1)
      refuse("window sizes, strides and dilations must be at least 1");
  window.low.assign(count, 0);
  window.high.assign(count, 0);
  std::string automatic = n.getText("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    padSame(window, sizes, automatic == "SAME_UPPER");
  } else if (automatic == "NOTSET" || automatic.empty()) {
    Ints pads = n.getInts("pads", Ints(2 * count, 0));
    if (pads.size() != 2 * count)
      refuse("'pads' has " + Twine(pads.size()) + " entries, but needs " + Twine(2 * count));
    if (llvm::any_of(pads, [](int64_t pad) { return pad < 0; }))
      refuse("'pads' has a negative entry");
    window.low.assign(pads.begin(), pads.begin() + count);
    window.high.assign(pads.begin() + count, pads.end());
  } else if (automatic != "VALID") {
    refuse("'auto_pad' is '" + automatic +
           "', but must be 'NOTSET', 'VALID', 'SAME_UPPER' or 'SAME_LOWER'");
  }
  return window;
}

/// Carries out the paddings known only at run time.
static Value padSymbolic(Emitter &e, Value x, const Window &window, ArrayRef<int64_t> axes,
                         Value value) {
  DimVector low(rankOf(x), Dim(0)), high(rankOf(x), Dim(0));
  for (size_t i = 0; i < window.symbolicLow.size(); ++i) {
    low[axes[i]] = window.symbolicLow[i];
    high[axes[i]] = window.symbolicHigh[i];
  }
  return e.pad(x, value, low, high);
}

static DimVector pick(Value x, ArrayRef<int64_t> axes) {
  DimVector all = dimsOf(x), picked;
  for (int64_t axis : axes)
    picked.push_back(all[axis]);
  return picked;
}

/// The filters, with the spatial sizes that 'kernel_shape' promises.
static Value filtersOf(Node &n, Value w, Value x) {
  if (rankOf(w) != rankOf(x))
    refuse("the filters have rank " + Twine(rankOf(w)) + ", but the input has " + Twine(rankOf(x)));
  auto declared = n.getInts("kernel_shape");
  if (!declared)
    return w;
  DimVector dims = dimsOf(w);
  bool fits = declared->size() + 2 == dims.size();
  for (size_t i = 0; i < declared->size() && fits; ++i) {
    fits = dims[2 + i].constant().value_or((*declared)[i]) == (*declared)[i];
    dims[2 + i] = Dim((*declared)[i]);
  }
  if (!fits)
    refuse("'kernel_shape' is not that of the filters, " + textOf(dimsOf(w)));
  return n.reshape(w, dims);
}

static DimVector spatialSizes(Value w) {
  DimVector dims = dimsOf(w);
  return DimVector(dims.begin() + 2, dims.end());
}

static std::optional<Ints> constants(ArrayRef<Dim> dims) {
  Ints values;
  for (const Dim &dim : dims) {
    if (!dim.constant())
      return std::nullopt;
    values.push_back(*dim.constant());
  }
  return values;
}

/// How far a window can be moved. At `least` or below there is no place for it at all.
static Dim slidePlaces(const Dim &size, const Window &window, size_t i, int64_t least = -1) {
  Dim reach = Dim(window.dilations[i]) * (window.size[i] - Dim(1)) + Dim(1);
  Dim padded = size + Dim(window.low[i] + window.high[i]), room = padded - reach;
  if (room.constant().value_or(0) <= least)
    refuse("the window of " + reach.str() + " is larger than the padded size " + padded.str());
  return room;
}

static int64_t groupsOf(Node &n) {
  int64_t groups = n.getInt("group", 1);
  if (groups < 1)
    refuse("'group' is " + Twine(groups) + ", but must be at least 1");
  return groups;
}

static DimVector sizes(ArrayRef<int64_t> values) { return {values.begin(), values.end()}; }

Value convolve(Node &n, Value x, Value w) {
  Ints axes = spatialAxes(x);
  w = filtersOf(n, w, x);
  Window window = readWindow(n, spatialSizes(w), pick(x, axes));
  int64_t groups = groupsOf(n);
  if (elementOf(x) != elementOf(w))
    refuse("input and filters have element types " + nameOf(elementOf(x)) + " and " +
           nameOf(elementOf(w)));
  x = padSymbolic(n, x, window, axes, n.scalar(elementOf(x), 0));
  if (!constants(window.size))
    return unfoldedConvolution(
        n, x, w, {window.strides, window.dilations, sizes(window.low), sizes(window.high), groups});
  DimVector dims = dimsOf(x);
  if (Dim channels = dimsOf(w)[1] * Dim(groups); channels.constant() && !dims[1].constant()) {
    dims[1] =
        agreed(n, dims[1], channels, "the image has %lld channels, but the filters take %lld");
    x = n.reshape(x, dims);
  }
  dims[1] = dimsOf(w)[0];
  for (size_t i = 0; i < axes.size(); ++i)
    dims[axes[i]] = slidePlaces(dims[axes[i]], window, i).floorDiv(Dim(window.strides[i])) + Dim(1);
  return n.typed<ConvOp>(n.tensor(dims, elementOf(x)), {x, w},
                         {n.list("strides", window.strides), n.list("dilations", window.dilations),
                          n.list("low", window.low), n.list("high", window.high),
                          n.integer("groups", groups)});
}

Value addChannelBias(Emitter &e, Value x, Value bias) {
  if (rankOf(bias) != 1)
    refuse("the bias must have rank 1, but has " + Twine(rankOf(bias)));
  return e.add(x, e.alongAxis(bias, 1, rankOf(x)));
}

static void importConv(Node &n) {
  Value y = convolve(n, n.in(0), n.in(1));
  n.set(n.has(2) ? addChannelBias(n, y, n.in(2)) : y);
}

static void importConvTranspose(Node &n) {
  Value x = n.in(0), w = filtersOf(n, n.in(1), x);
  Ints axes = spatialAxes(x);
  DimVector size = spatialSizes(w);
  size_t count = axes.size();
  Ints strides = spatialInts(n, "strides", count, 1);
  Ints dilations = spatialInts(n, "dilations", count, 1);
  Ints pads = n.getInts("pads", Ints(2 * count, 0));
  if (pads.size() != 2 * count)
    refuse("'pads' has " + Twine(pads.size()) + " entries, but needs " + Twine(2 * count));
  DimVector low(pads.begin(), pads.begin() + count), high(pads.begin() + count, pads.end());
  DimVector extra = sizes(spatialInts(n, "output_padding", count, 0));
  std::string automatic = n.getText("auto_pad", "NOTSET");
  if (!llvm::is_contained({"", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}, automatic))
    refuse("'auto_pad' is '" + automatic +
           "', but must be 'NOTSET', 'VALID', 'SAME_UPPER' or 'SAME_LOWER'");
  auto wanted = n.getInts("output_shape");
  if (wanted && wanted->size() < count)
    refuse("'output_shape' has " + Twine(wanted->size()) + " entries, but needs " + Twine(count));
  if (wanted && llvm::any_of(*wanted, [](int64_t size) { return size < 0; }))
    refuse("'output_shape' has a negative size");
  if (wanted && wanted->size() > count)
    wanted->erase(wanted->begin(), wanted->end() - count);
  DimVector dims = dimsOf(x);
  int64_t groups = groupsOf(n);
  dims[1] = dimsOf(w)[1] * Dim(groups);
  for (size_t i = 0; i < count; ++i) {
    Dim full = (dims[axes[i]] - Dim(1)) * Dim(strides[i]) + Dim(dilations[i]) * (size[i] - Dim(1)) +
               Dim(1) + extra[i];
    if (wanted || automatic.rfind("SAME", 0) == 0) {
      Dim target = wanted ? Dim((*wanted)[i]) : dims[axes[i]] * Dim(strides[i]);
      Dim all = Dim::max(full - target, Dim(0)), half = all.floorDiv(Dim(2));
      low[i] = automatic == "SAME_UPPER" ? half : all - half;
      high[i] = all - low[i];
      Dim more = Dim::max(target - full, Dim(0));
      extra[i] = extra[i] + more;
      full = full + more;
    } else if (automatic == "VALID") {
      low[i] = high[i] = Dim(0);
    }
    dims[axes[i]] = full - low[i] - high[i];
  }
  auto before = constants(low), after = constants(high), padding = constants(extra);
  Value y;
  if (before && after && padding && constants(size)) {
    y = n.typed<ConvTransposeOp>(n.tensor(dims, elementOf(x)), {x, w},
                                 {n.list("strides", strides), n.list("dilations", dilations),
                                  n.list("low", *before), n.list("high", *after),
                                  n.list("output_padding", *padding), n.integer("groups", groups)});
  } else {
    for (size_t i = 0; i < count; ++i)
      high[i] = high[i] - extra[i];
    y = unfoldedTransposedConvolution(n, x, w, {strides, dilations, low, high, groups});
  }
  n.set(n.has(2) ? addChannelBias(n, y, n.in(2)) : y);
}

/// Whether a window may be larger than a padded image that is not empty, which paddings that follow
/// from sizes rule out.
static bool mayOverhang(const Dim &size, const Dim &places, const Window &window) {
  if (!window.symbolicLow.empty())
    return false;
  if (auto number = places.constant())
    return *number < 0;
  auto missing = (size - places).constant();
  return !missing || (*missing > 1 && !places.isNeverNegative());
}

/// Divides places toward zero, as ONNX Runtime does: a window that is larger than the image by less
/// than a stride has one place, where ONNX's text would give none.
DimVector pooledSizes(ArrayRef<Dim> sizes, const Window &window, bool ceiling) {
  DimVector pooled;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim stride(window.strides[i]);
    Dim places = slidePlaces(sizes[i], window, i, -window.strides[i]);
    Dim last = places.floorDiv(stride);
    if (!ceiling && mayOverhang(sizes[i], places, window))
      last = Dim::max(last, Dim::min(places.ceilDiv(stride), Dim(0)));
    if (ceiling) // the last window must begin inside of x or of the padding before it
      last = Dim::min(places.ceilDiv(stride), (sizes[i] + Dim(window.low[i] - 1)).floorDiv(stride));
    pooled.push_back(last + Dim(1));
  }
  return pooled;
}

Value poolWindows(Node &n, Value x, StringRef kind, bool channelsLast) {
  Ints axes = spatialAxes(x, channelsLast);
  auto size = n.getInts("kernel_shape");
  if (!size)
    refuse("'kernel_shape' is missing");
  Window window = readWindow(n, sizes(*size), pick(x, axes));
  DimVector before = dimsOf(x);
  bool isMax = kind == "max", ceiling = n.getInt("ceil_mode", 0);
  bool countsPadding = n.getInt("count_include_pad", 0);
  auto isZero = [](const Dim &dim) { return dim.isConstant(0); };
  bool isSymbolic =
      !llvm::all_of(window.symbolicLow, isZero) || !llvm::all_of(window.symbolicHigh, isZero);
  if (isSymbolic) {
    Value border = isMax ? n.lowest(elementOf(x)) : n.scalar(elementOf(x), 0);
    x = padSymbolic(n, x, window, axes, border);
  }
  DimVector dims = dimsOf(x);
  DimVector from = pick(x, axes), pooled = pooledSizes(from, window, ceiling);
  bool overhangs = ceiling; // the last window may end beyond the padding
  for (size_t i = 0; i < axes.size(); ++i) {
    overhangs |= mayOverhang(from[i], slidePlaces(from[i], window, i, -window.strides[i]), window);
    dims[axes[i]] = pooled[i];
  }
  auto pool = [&](Value image, bool countPadding) {
    return n.typed<PoolOp>(n.tensor(dims, elementOf(image)), image,
                           {n.text("kind", kind), n.list("window", *size),
                            n.list("strides", window.strides),
                            n.list("dilations", window.dilations), n.list("low", window.low),
                            n.list("high", window.high), n.flag("count_padding", countPadding),
                            n.flag("ceil_mode", overhangs), n.flag("channels_last", channelsLast)});
  };
  if (!isSymbolic || isMax || countsPadding)
    return pool(x, countsPadding);
  // The share of each window that is no padding is the average of ones.
  Value ones =
      padSymbolic(n, n.full(before, elementOf(x), 1), window, axes, n.scalar(elementOf(x), 0));
  return n.div(pool(x, true), pool(ones, true));
}

static void importMaxPool(Node &n) {
  n.set(poolWindows(n, n.in(0), "max", false));
  if (n.wants(1))
    n.set(1, maxPlaces(n, n.in(0)));
}
static void importAveragePool(Node &n) { n.set(poolWindows(n, n.in(0), "average", false)); }
static void importGlobalAveragePool(Node &n) { n.set(n.mean(n.in(0), spatialAxes(n.in(0)))); }
static void importGlobalMaxPool(Node &n) {
  n.set(n.reduce<ReduceMaxOp>(n.in(0), spatialAxes(n.in(0))));
}

OpRows convolutionRows() {
  static const OpRow rows[] = {
      {"Conv", "", 1, 27, importConv},
      {"ConvTranspose", "", 1, 27, importConvTranspose},
      {"MaxPool", "", 1, 27, importMaxPool},
      {"AveragePool", "", 1, 27, importAveragePool},
      {"GlobalAveragePool", "", 1, 27, importGlobalAveragePool},
      {"GlobalMaxPool", "", 1, 27, importGlobalMaxPool},
  };
  return rows;
}

} // namespace heddle::onnx
