// Window: derivatives of convolutions and pools.
//
// With respect to its image a convolution has its transpose as derivative. With respect to its
// filters it is a product: the windows are laid out as columns, one strided slice of the image for
// each place in the window. Pools are differentiated place by place.

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
  /// The adjoint of `at`, without the border.
  Value back(Value x, int64_t place, ArrayRef<Dim> image) {
    DimVector starts = this->starts(place), before = amounts();
    for (size_t i = 0; i < starts.size(); ++i)
      starts[i] = starts[i] - before[i];
    return f.unslice(x, starts, steps, image);
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

/// Between [n, spatial..., c] and [n, c, spatial...].
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

/// dw[o, c, k] = sum over batches and positions p of small[n, o, p] * image[n, c, p at place k],
/// in the shape of `w`, group by group.
static Value filterAdjoint(Flow &f, Places places, Value image, Value small, Value w,
                           int64_t groups) {
  DimVector filters = dimsOf(w), dims = dimsOf(small);
  Dim batch = dims[0], group(groups), perGroup = filters[0].floorDiv(group);
  Dim positions = elementCount(ArrayRef<Dim>(dims).drop_front(2));
  image = places.bordered(image, 0);
  SmallVector<Value> columns;
  for (int64_t place = 0; place < places.size(); ++place) {
    Value piece = f.reshape(places.at(image, place), {batch, group, filters[1], positions});
    piece = f.transpose(piece, {1, 0, 3, 2});
    columns.push_back(f.reshape(piece, {group, batch * positions, filters[1]}));
  }
  Value right = columns.size() == 1 ? columns[0] : f.make<ConcatOp>(columns, uint64_t(2));
  Value left = f.transpose(f.reshape(small, {batch, group, perGroup, positions}), {1, 2, 0, 3});
  left = f.reshape(left, {group, perGroup, batch * positions});
  Value product = f.reshape(f.matmul(left, right), {filters[0], Dim(places.size()), filters[1]});
  return f.reshape(f.transpose(product, {0, 2, 1}), filters);
}

/// dx of a convolution: each element of dy goes back to its window.
static Value imageAdjoint(Flow &f, ConvOp op, Value dy, ArrayRef<Dim> image) {
  DimVector w = dimsOf(op.getW()), from = dimsOf(dy), to(image), high(image.size(), Dim(0));
  Ints cropped, extended;
  for (size_t i = 0; i + 2 < image.size(); ++i) {
    int64_t stride = op.getStrides()[i], dilation = op.getDilations()[i];
    Dim whole = (from[i + 2] - Dim(1)) * Dim(stride) + Dim(dilation) * (w[i + 2] - Dim(1)) +
                Dim(1 - op.getLow()[i]);
    int64_t rest = (image[i + 2] - whole).constant().value_or(0);
    extended.push_back(std::max<int64_t>(rest, 0));
    cropped.push_back(std::max<int64_t>(-rest, 0));
    to[i + 2] = whole + Dim(rest);
    high[i + 2] = image[i + 2] - to[i + 2];
  }
  Value x = f.typed<ConvTransposeOp>(to, elementOf(dy), dy, op.getW(), op.getStrides(),
                                     op.getDilations(), op.getLow(), cropped, extended,
                                     op.getGroups(), /*channels_last=*/false);
  return f.reshape(f.pad(x, DimVector(image.size(), Dim(0)), high), image);
}

static void convRule(Flow &f) {
  auto op = f.as<ConvOp>();
  Layout layout(op.getChannelsLast(), rankOf(f.x()));
  Value dy = layout.first(f, f.dy()), x = layout.first(f, f.x());
  if (f.wants(0))
    f.give(0, layout.back(f, imageAdjoint(f, op, dy, dimsOf(x))));
  if (!f.wants(1))
    return;
  auto window = windowOf(f, op.getW());
  if (!window)
    return;
  Places places(f, *window, op.getStrides(), op.getDilations(), op.getLow(),
                ArrayRef<Dim>(dimsOf(dy)).drop_front(2));
  f.give(1, filterAdjoint(f, places, x, dy, op.getW(), op.getGroups()));
}

static void convTransposeRule(Flow &f) {
  auto op = f.as<ConvTransposeOp>();
  Layout layout(op.getChannelsLast(), rankOf(f.x()));
  Value dy = layout.first(f, f.dy()), x = layout.first(f, f.x());
  auto window = windowOf(f, op.getW());
  if (!window)
    return;
  DimVector dims = dimsOf(x);
  Places places(f, *window, op.getStrides(), op.getDilations(), op.getLow(),
                ArrayRef<Dim>(dims).drop_front(2));
  if (f.wants(0)) { // the border makes exactly as many positions as x has
    Ints none(window->size(), 0);
    Value dx = f.typed<ConvOp>(dims, elementOf(dy), places.bordered(dy, 0), op.getW(),
                               op.getStrides(), op.getDilations(), none, none, op.getGroups(),
                               /*channels_last=*/false);
    f.give(0, layout.back(f, dx));
  }
  if (f.wants(1))
    f.give(1, filterAdjoint(f, places, dy, x, op.getW(), op.getGroups()));
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
  Value dx;
  if (op.getKind() == "average") {
    Value share = f.div(dy, f.broadcast(divisorOf(f, op, positions, image), sizes));
    dx = overPlaces(f, places, [&](int64_t place) { return places.back(share, place, image); });
  } else {
    Value bordered = places.bordered(x, -std::numeric_limits<double>::infinity());
    auto isBest = [&](int64_t place) {
      return f.cast(f.compare<EqualOp>(places.at(bordered, place), y), elementOf(y));
    };
    Value share = f.div(dy, overPlaces(f, places, isBest));
    dx = overPlaces(f, places, [&](int64_t place) {
      return places.back(f.mul(share, isBest(place)), place, image);
    });
  }
  f.give(0, layout.back(f, dx));
}

Rows windowRules() {
  static const Row rows[] = {
      {ConvOp::getOperationName(), convRule},
      {ConvTransposeOp::getOperationName(), convTransposeRule},
      {PoolOp::getOperationName(), poolRule},
  };
  return rows;
}

} // namespace heddle::grad
