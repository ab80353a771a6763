// Convolution: convolutions, pools, and the paddings that they name in four ways.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Products.h"

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
    Dim stride(window.strides[i]), reach((window.size[i] - 1) * window.dilations[i] + 1);
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

Window readWindow(Node &n, Ints size, ArrayRef<Dim> sizes) {
  size_t count = sizes.size();
  Window window;
  window.size = std::move(size);
  window.strides = spatialInts(n, "strides", count, 1);
  window.dilations = spatialInts(n, "dilations", count, 1);
  if (window.size.size() != count)
    refuse("'kernel_shape' has " + Twine(window.size.size()) + " entries, but needs " +
           Twine(count));
  for (size_t i = 0; i < count; ++i)
    if (window.strides[i] < 1 || window.dilations[i] < 1 || window.size[i] < 1)
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

/// Carries out the paddings that only the run knows.
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

static Ints kernelShape(Node &n, Value w) {
  Ints size;
  DimVector dims = dimsOf(w);
  for (size_t i = 2; i < dims.size(); ++i) {
    if (!dims[i].constant())
      refuse("the size of the filters must be constant");
    size.push_back(*dims[i].constant());
  }
  if (auto declared = n.getInts("kernel_shape"); declared && *declared != size)
    refuse("'kernel_shape' is not that of the filters, " + textOf(dims));
  return size;
}

static Dim slidePlaces(const Dim &size, const Window &window, size_t i) {
  int64_t reach = window.dilations[i] * (window.size[i] - 1) + 1;
  Dim room = size + Dim(window.low[i] + window.high[i] - reach);
  if (room.constant().value_or(0) < 0)
    refuse("the window of " + Twine(reach) + " is larger than the padded size " +
           (size + Dim(window.low[i] + window.high[i])).str());
  return room;
}

Value convolve(Node &n, Value x, Value w) {
  Ints axes = spatialAxes(x);
  if (rankOf(w) != rankOf(x))
    refuse("the filters have rank " + Twine(rankOf(w)) + ", but the input has " + Twine(rankOf(x)));
  Window window = readWindow(n, kernelShape(n, w), pick(x, axes));
  x = padSymbolic(n, x, window, axes, n.scalar(elementOf(x), 0));
  DimVector dims = dimsOf(x);
  dims[1] = dimsOf(w)[0];
  for (size_t i = 0; i < axes.size(); ++i)
    dims[axes[i]] = slidePlaces(dims[axes[i]], window, i).floorDiv(Dim(window.strides[i])) + Dim(1);
  int64_t groups = n.getInt("group", 1);
  if (groups < 1)
    refuse("'group' is " + Twine(groups) + ", but must be at least 1");
  if (elementOf(x) != elementOf(w))
    refuse("input and filters have element types " + nameOf(elementOf(x)) + " and " +
           nameOf(elementOf(w)));
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
  Value x = n.in(0), w = n.in(1);
  Ints axes = spatialAxes(x), size = kernelShape(n, w);
  size_t count = axes.size();
  if (size.size() != count)
    refuse("the filters have rank " + Twine(rankOf(w)) + ", but the input has " + Twine(rankOf(x)));
  Ints strides = spatialInts(n, "strides", count, 1);
  Ints dilations = spatialInts(n, "dilations", count, 1);
  Ints extra = spatialInts(n, "output_padding", count, 0);
  Ints pads = n.getInts("pads", Ints(2 * count, 0));
  if (pads.size() != 2 * count)
    refuse("'pads' has " + Twine(pads.size()) + " entries, but needs " + Twine(2 * count));
  Ints low(pads.begin(), pads.begin() + count), high(pads.begin() + count, pads.end());
  std::string automatic = n.getText("auto_pad", "NOTSET");
  auto wanted = n.getInts("output_shape");
  if (wanted && wanted->size() > count)
    wanted->erase(wanted->begin(), wanted->end() - count);
  DimVector dims = dimsOf(x);
  int64_t groups = n.getInt("group", 1);
  dims[1] = dimsOf(w)[1] * Dim(groups);
  for (size_t i = 0; i < count; ++i) {
    Dim full = (dims[axes[i]] - Dim(1)) * Dim(strides[i]) +
               Dim(dilations[i] * (size[i] - 1) + 1 + extra[i]);
    bool isSame = automatic.rfind("SAME", 0) == 0;
    if (wanted || isSame) {
      Dim target = wanted ? Dim((*wanted)[i]) : dims[axes[i]] * Dim(strides[i]);
      auto total = (full - target).constant();
      if (!total)
        refuse("the padding of dimension " + Twine(axes[i]) +
               " depends on a size that is not constant");
      int64_t all = std::max<int64_t>(*total, 0), half = all / 2;
      low[i] = automatic == "SAME_UPPER" ? half : all - half;
      high[i] = all - low[i];
      extra[i] += std::max<int64_t>(-*total, 0);
      full = full + Dim(std::max<int64_t>(-*total, 0));
    } else if (automatic == "VALID") {
      low[i] = high[i] = 0;
    }
    dims[axes[i]] = full - Dim(low[i] + high[i]);
  }
  Value y = n.typed<ConvTransposeOp>(
      n.tensor(dims, elementOf(x)), {x, w},
      {n.list("strides", strides), n.list("dilations", dilations), n.list("low", low),
       n.list("high", high), n.list("output_padding", extra), n.integer("groups", groups)});
  n.set(n.has(2) ? addChannelBias(n, y, n.in(2)) : y);
}

DimVector pooledSizes(ArrayRef<Dim> sizes, const Window &window, bool ceiling) {
  DimVector pooled;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim stride(window.strides[i]), places = slidePlaces(sizes[i], window, i);
    Dim last = places.floorDiv(stride);
    if (ceiling) // the last window must begin inside of x or of the padding before it
      last = Dim::min(places.ceilDiv(stride), (sizes[i] + Dim(window.low[i] - 1)).floorDiv(stride));
    pooled.push_back(last + Dim(1));
  }
  return pooled;
}

static Value makePool(Node &n, Value x, ArrayRef<Dim> dims, StringRef kind, const Window &window,
                      std::initializer_list<NamedAttribute> flags) {
  SmallVector<NamedAttribute> attributes = {n.text("kind", kind),
                                            n.list("window", window.size),
                                            n.list("strides", window.strides),
                                            n.list("dilations", window.dilations),
                                            n.list("low", window.low),
                                            n.list("high", window.high)};
  attributes.append(flags.begin(), flags.end());
  return n.typed<PoolOp>(n.tensor(dims, elementOf(x)), x, attributes);
}

/// An average over what is not padding, where only the run knows the padding: that of the padded x
/// divided by that of ones.
static Value averageSame(Node &n, Value x, const Window &window, ArrayRef<int64_t> axes,
                         bool channelsLast) {
  DimVector single(rankOf(x), Dim(1));
  for (int64_t axis : axes)
    single[axis] = dimsOf(x)[axis];
  auto average = [&](Value part) {
    part = padSymbolic(n, part, window, axes, n.scalar(elementOf(part), 0));
    DimVector dims = dimsOf(part), pooled = pooledSizes(pick(part, axes), window, false);
    for (size_t i = 0; i < axes.size(); ++i)
      dims[axes[i]] = pooled[i];
    return makePool(n, part, dims, "average", window,
                    {n.flag("count_padding", true), n.flag("ceil_mode", false),
                     n.flag("channels_last", channelsLast)});
  };
  return n.div(average(x), average(n.full(single, elementOf(x), 1)));
}

Value poolWindows(Node &n, Value x, StringRef kind, bool channelsLast) {
  Ints axes = spatialAxes(x, channelsLast);
  auto size = n.getInts("kernel_shape");
  if (!size)
    refuse("'kernel_shape' is missing");
  Window window = readWindow(n, *size, pick(x, axes));
  bool isMax = kind == "max", ceiling = n.getInt("ceil_mode", 0);
  bool countsPadding = n.getInt("count_include_pad", 0);
  auto isZero = [](const Dim &dim) { return dim.isConstant(0); };
  bool isSymbolic =
      !llvm::all_of(window.symbolicLow, isZero) || !llvm::all_of(window.symbolicHigh, isZero);
  if (isSymbolic && !isMax && !countsPadding)
    return averageSame(n, x, window, axes, channelsLast);
  if (isSymbolic) {
    bool isFloat = isa<FloatType>(elementOf(x));
    unsigned width = elementOf(x).getIntOrFloatBitWidth();
    Value lowest = isFloat ? n.scalar(elementOf(x), -INFINITY)
                   : elementOf(x).isUnsignedInteger()
                       ? n.integerScalar(elementOf(x), 0)
                       : n.integerScalar(elementOf(x), -(int64_t(1) << (width - 1)));
    x = padSymbolic(n, x, window, axes, isMax ? lowest : n.scalar(elementOf(x), 0));
  }
  DimVector dims = dimsOf(x), pooled = pooledSizes(pick(x, axes), window, ceiling);
  for (size_t i = 0; i < axes.size(); ++i)
    dims[axes[i]] = pooled[i];
  return makePool(n, x, dims, kind, window,
                  {n.flag("count_padding", countsPadding), n.flag("ceil_mode", ceiling),
                   n.flag("channels_last", channelsLast)});
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
