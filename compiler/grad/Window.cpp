// Window: derivatives of convolutions and pools.
//
// With respect to its image a convolution has its transpose as derivative, with respect to its
// filters an op of its own. Gradients that a pool's windows give back to their elements are an op
// too; an element's share is computed place by place.

#include "compiler/grad/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

/// Each place of a window costs a few ops; larger windows are refused.
static constexpr int64_t kMostPlaces = 1024;

namespace {
/// The places of a window over an image [n, c, spatial...], for each of `count` positions along
/// each dimension: image index = position * stride - low + place * dilation.
class Places {
public:
  Places(Flow &f, ArrayRef<int64_t> window, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
         ArrayRef<int64_t> low, ArrayRef<Dim> counts)
      : f(f), window(window), dilations(dilations), low(low), counts(counts), steps{1, 1} {
    steps.append(strides.begin(), strides.end());
  }

  int64_t size() const {
    int64_t size = 1;
    for (int64_t extent : window)
      size *= extent;
    return size;
  }
  /// The image with a border of `value`, such that each place is inside.
  Value bordered(Value image, double value) {
    Value border = f.scalar(elementOf(image), value);
    DimVector before = amounts(), after = missing(dimsOf(image));
    return f.make<PadOp>(image, border, attributeOf(f, before), attributeOf(f, after), "constant");
  }
  /// The elements of a bordered image at one place of the window.
  Value at(Value bordered, int64_t place) {
    DimVector sizes = dimsOf(bordered);
    std::copy(counts.begin(), counts.end(), sizes.begin() + 2);
    return f.slice(bordered, starts(place), sizes, steps);
  }

private:
  DimVector amounts() const {
    DimVector dims(2, Dim(0));
    dims.append(low.begin(), low.end());
    return dims;
  }
  DimVector missing(ArrayRef<Dim> image) const {
    DimVector dims(2, Dim(0));
    for (size_t i = 0; i < window.size(); ++i)
      dims.push_back((counts[i] - Dim(1)) * Dim(steps[i + 2]) +
                     Dim(dilations[i] * (window[i] - 1) + 1 - low[i]) - image[i + 2]);
    return dims;
  }
  DimVector starts(int64_t place) const {
    DimVector dims(window.size() + 2, Dim(0));
    for (size_t i = window.size(); i-- > 0; place /= window[i])
      dims[i + 2] = Dim(place % window[i] * dilations[i]);
    return dims;
  }

  Flow &f;
  Ints window, dilations, low;
  DimVector counts;
  Ints steps;
};

/// Moves between [n, spatial..., c] and [n, c, spatial...].
struct Layout {
  Layout(bool channelsLast, int64_t rank) : identity(!channelsLast), toFirst{0, rank - 1} {
    for (int64_t i = 1; i + 1 < rank; ++i)
      toFirst.push_back(i);
  }
  Value first(Flow &f, Value x) const { return identity ? x : f.transpose(x, toFirst); }
  Value back(Flow &f, Value x) const {
    return identity ? x : f.transpose(x, graph::inverse(toFirst));
  }
  bool identity;
  Ints toFirst;
};
} // namespace

/// The extents of a window in sizes that are known; nullopt refuses the op.
static std::optional<Ints> windowOf(Flow &f, Value w) {
  Ints window;
  int64_t count = 1;
  for (const Dim &dim : ArrayRef<Dim>(dimsOf(w)).drop_front(2)) {
    window.push_back(dim.constant().value_or(0));
    count *= window.back();
  }
  if (count >= 1 && count <= kMostPlaces)
    return window;
  f.refuse("its filters have shape " + textOf(dimsOf(w)) +
           "; those with a derivative have a window of constant size, of 1 to " +
           Twine(kMostPlaces) + " elements");
  return std::nullopt;
}

namespace {
/// How a convolution walks its image.
struct Geometry {
  ArrayRef<int64_t> strides, dilations, low;
  int64_t groups;
};
} // namespace

template <typename Op> static Geometry geometryOf(Op op) {
  return {op.getStrides(), op.getDilations(), op.getLow(), static_cast<int64_t>(op.getGroups())};
}

/// dx of a convolution with the filters w: each element of dy goes back to its window.
static Value imageAdjoint(Flow &f, const Geometry &conv, Value dy, Value w, ArrayRef<Dim> image) {
  DimVector window = dimsOf(w), from = dimsOf(dy), to(image), high(image.size(), Dim(0));
  Ints cropped, extended;
  for (size_t i = 0; i + 2 < image.size(); ++i) {
    int64_t stride = conv.strides[i], dilation = conv.dilations[i];
    Dim whole = (from[i + 2] - Dim(1)) * Dim(stride) + Dim(dilation) * (window[i + 2] - Dim(1)) +
                Dim(1 - conv.low[i]);
    int64_t rest = (image[i + 2] - whole).constant().value_or(0);
    extended.push_back(std::max<int64_t>(rest, 0));
    cropped.push_back(std::max<int64_t>(-rest, 0));
    to[i + 2] = whole + Dim(rest);
    high[i + 2] = image[i + 2] - to[i + 2];
  }
  Value x = f.typed<ConvTransposeOp>(to, elementOf(dy), dy, w, conv.strides, conv.dilations,
                                     conv.low, cropped, extended, conv.groups,
                                     /*channels_last=*/false);
  return f.reshape(f.pad(x, DimVector(image.size(), Dim(0)), high), image);
}

/// dw of a convolution from `image` to the shape of `small`, in the shape of `w`.
template <typename Op> static Value filterAdjoint(Flow &f, Op op, Value image, Value small) {
  return f.typed<ConvFilterGradientOp>(dimsOf(op.getW()), elementOf(small), image, small,
                                       op.getStrides(), op.getDilations(), op.getLow(),
                                       op.getHigh(), op.getGroups(), /*channels_last=*/false);
}

static void convRule(Flow &f) {
  auto op = f.as<ConvOp>();
  Layout layout(op.getChannelsLast(), rankOf(f.x()));
  Value dy = layout.first(f, f.dy()), x = layout.first(f, f.x());
  if (f.wants(0))
    f.give(0, layout.back(f, imageAdjoint(f, geometryOf(op), dy, op.getW(), dimsOf(x))));
  if (f.wants(1))
    f.give(1, filterAdjoint(f, op, x, dy));
}

static void convTransposeRule(Flow &f) {
  auto op = f.as<ConvTransposeOp>();
  Layout layout(op.getChannelsLast(), rankOf(f.x()));
  Value dy = layout.first(f, f.dy()), x = layout.first(f, f.x());
  if (f.wants(1))
    f.give(1, filterAdjoint(f, op, dy, x));
  if (!f.wants(0))
    return;
  auto window = windowOf(f, op.getW());
  if (!window)
    return;
  DimVector dims = dimsOf(x);
  Places places(f, *window, op.getStrides(), op.getDilations(), op.getLow(),
                ArrayRef<Dim>(dims).drop_front(2));
  Ints none(window->size(), 0); // the border makes exactly as many positions as x has
  Value dx = f.typed<ConvOp>(dims, elementOf(dy), places.bordered(dy, 0), op.getW(),
                             op.getStrides(), op.getDilations(), none, none, op.getGroups(),
                             /*channels_last=*/false);
  f.give(0, layout.back(f, dx));
}

/// Linear in both: by x it is the way back of a convolution with the gradient as filters, by dy
/// that convolution itself.
static void filterGradientRule(Flow &f) {
  auto op = f.as<ConvFilterGradientOp>();
  Layout layout(op.getChannelsLast(), rankOf(f.x()));
  Value x = layout.first(f, f.x()), dy = layout.first(f, f.x(1));
  if (f.wants(0))
    f.give(0, layout.back(f, imageAdjoint(f, geometryOf(op), dy, f.dy(), dimsOf(x))));
  if (f.wants(1)) {
    Value back = f.typed<ConvOp>(dimsOf(dy), elementOf(dy), x, f.dy(), op.getStrides(),
                                 op.getDilations(), op.getLow(), op.getHigh(), op.getGroups(),
                                 /*channels_last=*/false);
    f.give(1, layout.back(f, back));
  }
}

static Value overPlaces(Flow &f, const Places &places, llvm::function_ref<Value(int64_t)> term) {
  Value total;
  for (int64_t place = 0; place < places.size(); ++place) {
    Value next = term(place);
    total = total ? f.add(total, next) : next;
  }
  return total;
}

/// How many elements each window of an average counts, in [1, 1, positions...]; at least 1.
static Value divisorOf(Flow &f, PoolOp op, ArrayRef<Dim> positions, ArrayRef<Dim> image) {
  DimVector dims(image);
  dims[0] = dims[1] = Dim(1);
  Ints low(op.getLow());
  if (op.getCountPadding())
    for (size_t i = 0; i < low.size(); ++i) {
      dims[i + 2] = dims[i + 2] + Dim(low[i] + op.getHigh()[i]);
      low[i] = 0;
    }
  Places places(f, op.getWindow(), op.getStrides(), op.getDilations(), low, positions);
  Value inside = places.bordered(f.full(dims, elementOf(f.dy()), 1), 0);
  Value count = overPlaces(f, places, [&](int64_t place) { return places.at(inside, place); });
  return f.binary<MaxOp>(count, f.like(count, 1));
}

/// Equal largest elements of a window share evenly, as those of a reduction do.
static void poolRule(Flow &f) {
  auto op = f.as<PoolOp>();
  Layout layout(op.getChannelsLast(), rankOf(f.x()));
  Value dy = layout.first(f, f.dy()), x = layout.first(f, f.x()), y = layout.first(f, f.y());
  DimVector image = dimsOf(x), sizes = dimsOf(y);
  ArrayRef<Dim> positions = ArrayRef<Dim>(sizes).drop_front(2);
  Places places(f, op.getWindow(), op.getStrides(), op.getDilations(), op.getLow(), positions);
  if (places.size() > kMostPlaces) {
    f.refuse("its window has " + Twine(places.size()) + " elements; those with a derivative have " +
             Twine(kMostPlaces) + " or fewer");
    return;
  }
  Value share;
  SmallVector<Value> images;
  if (op.getKind() == "average") {
    share = f.div(dy, f.broadcast(divisorOf(f, op, positions, image), sizes));
  } else {
    Value bordered = places.bordered(x, -std::numeric_limits<double>::infinity());
    Value equals = overPlaces(f, places, [&](int64_t place) {
      return f.cast(f.compare<EqualOp>(places.at(bordered, place), y), elementOf(y));
    });
    share = f.div(dy, equals);
    images = {x, y};
  }
  Value dx = f.typed<UnpoolOp>(image, elementOf(dy), share, images, op.getWindow(), op.getStrides(),
                               op.getDilations(), op.getLow(), /*channels_last=*/false);
  f.give(0, layout.back(f, dx));
}

/// Each window gives all its elements the same, so its slope is the sum of theirs; of the equal
/// ones alone if there are images, which only say which these are.
static void unpoolRule(Flow &f) {
  auto op = f.as<UnpoolOp>();
  if (!f.wants(0))
    return;
  Layout layout(op.getChannelsLast(), rankOf(f.x()));
  Value share = layout.first(f, f.x()), slope = layout.first(f, f.dy()), x, y;
  DimVector sizes = dimsOf(share);
  Places places(f, op.getWindow(), op.getStrides(), op.getDilations(), op.getLow(),
                ArrayRef<Dim>(sizes).drop_front(2));
  if (!op.getImages().empty()) {
    x = places.bordered(layout.first(f, op.getImages()[0]),
                        -std::numeric_limits<double>::infinity());
    y = layout.first(f, op.getImages()[1]);
  }
  Value bordered = places.bordered(slope, 0);
  Value total = overPlaces(f, places, [&](int64_t place) {
    Value term = places.at(bordered, place);
    if (!x)
      return term;
    return f.mul(term, f.cast(f.compare<EqualOp>(places.at(x, place), y), elementOf(term)));
  });
  f.give(0, layout.back(f, total));
}

Rows windowRules() {
  static const Row rows[] = {
      {ConvOp::getOperationName(), convRule},
      {ConvTransposeOp::getOperationName(), convTransposeRule},
      {ConvFilterGradientOp::getOperationName(), filterGradientRule},
      {PoolOp::getOperationName(), poolRule},
      {UnpoolOp::getOperationName(), unpoolRule},
  };
  return rows;
}

} // namespace heddle::grad
