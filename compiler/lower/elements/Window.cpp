// Window: elements of convolutions and pools as plain loops over the window.

#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// Walks the positions of a window whose source place in spatial dimension d is numerator /
/// divisor: for conv and pool out * stride + k * dilation - low; for conv_transpose (out + low - k
/// * dilation) / stride where that divides.
class Window {
public:
  Window(Elements &e, Values sizes, Indices place, ArrayRef<int64_t> strides,
         ArrayRef<int64_t> dilations, ArrayRef<int64_t> low, bool transposed)
      : sizes(std::move(sizes)), place(std::move(place)), low(low), e(e), strides(strides),
        dilations(dilations), transposed(transposed) {}

  Values sizes;   // of the source, spatial
  Values windows; // of the window
  Indices place;  // of the result, spatial
  ArrayRef<int64_t> low;

  using Visit = std::function<Values(ArrayRef<Index> source, ArrayRef<Value> taps, ValueRange)>;

  Values walk(Values carried, const Visit &visit) {
    source.clear();
    taps.clear();
    return nest(0, carried, Value(), visit);
  }

private:
  Elements &e;
  ArrayRef<int64_t> strides, dilations;
  bool transposed;
  Indices source;
  Values taps;

  Values nest(size_t d, Values carried, Value condition, const Visit &visit) {
    Code &code = e.code();
    if (d == sizes.size())
      return atSource(carried, condition, visit);
    return foldScoped(e, code.number(0), windows[d], carried, [&](Value k, ValueRange inner) {
      Value reach = code.mul(k, code.number(dilations[d]));
      Index index;
      Value ok;
      if (!transposed) {
        index = e.shift(e.scale(place[d], strides[d]), code.sub(reach, code.number(low[d])));
      } else {
        Index numerator = e.shift(place[d], code.sub(code.number(low[d]), reach));
        Value lanes = e.lanesOf(numerator);
        auto like = [&](Value value) { return Code::isVector(lanes) ? code.spread(value) : value; };
        Value stride = like(code.number(strides[d]));
        Value rest = code.b.createOrFold<arith::RemSIOp>(code.loc, lanes, stride);
        ok = code.both(ok, code.b.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq,
                                                              rest, like(code.number(0))));
        index = e.fromLanes(code.b.createOrFold<arith::DivSIOp>(code.loc, lanes, stride));
      }
      ok = code.both(ok, inside(e, index, sizes[d]));
      source.push_back(index);
      taps.push_back(k);
      Values result = hasLanes() && !Code::isVector(ok)
                          ? branch(ok, inner, [&] { return nest(d + 1, inner, condition, visit); })
                          : nest(d + 1, inner, code.both(condition, ok), visit);
      source.pop_back();
      taps.pop_back();
      return result;
    });
  }

  /// Whether lanes differ in their place: what they share then has a branch of its own, as a mask
  /// would not hold what is read once for all of them.
  bool hasLanes() const {
    return llvm::any_of(place, [](const Index &index) { return !index.isUniform(); });
  }

  Values branch(Value condition, ValueRange carried, llvm::function_ref<Values()> body) {
    return e.code().choose(
        condition, TypeRange(carried),
        [&] {
          Elements::Scope scope(e);
          return body();
        },
        [&] { return Values(carried); });
  }

  /// Visits where the source exists; elsewhere carries on unchanged.
  Values atSource(Values carried, Value condition, const Visit &visit) {
    Code &code = e.code();
    if (Code::isVector(condition)) {
      Elements::Scope scope(e);
      Value before = e.mask;
      e.mask = code.both(before, condition);
      Values next = visit(source, taps, carried);
      e.mask = before;
      for (auto [value, old] : llvm::zip(next, carried))
        value = code.b.create<arith::SelectOp>(code.loc, condition, value, old);
      return next;
    }
    auto here = [&] { return visit(source, taps, carried); };
    return condition ? branch(condition, carried, here) : here();
  }
};
} // namespace

template <typename Op>
static Window windowOf(Elements &e, Op op, ArrayRef<Index> place, bool transposed) {
  bool last = op.getChannelsLast();
  Values sizes = e.sizesOf(op.getX());
  size_t spatial = sizes.size() - 2, first = last ? 1 : 2;
  return Window(e, Values(ArrayRef<Value>(sizes).slice(first, spatial)),
                Indices(place.slice(first, spatial)), op.getStrides(), op.getDilations(),
                op.getLow(), transposed);
}

static Indices imagePlace(bool channelsLast, const Index &batch, const Index &channel,
                          ArrayRef<Index> spatial) {
  Indices place{batch};
  if (!channelsLast)
    place.push_back(channel);
  place.append(spatial.begin(), spatial.end());
  if (channelsLast)
    place.push_back(channel);
  return place;
}

static Value poolElement(Elements &e, graph::PoolOp op, ArrayRef<Index> place) {
  Code &code = e.code();
  bool isMax = op.getKind() == "max", last = op.getChannelsLast();
  Type element = graph::storageOf(op.getX()), accumulator = accumulatorType(element);
  Window window = windowOf(e, op, place, false);
  for (int64_t size : op.getWindow())
    window.windows.push_back(code.number(size));
  const Index &channel = last ? place.back() : place[1];
  Values start{code.spread(neutral(code, op, accumulator))};
  bool counts = !isMax;
  Value one = code.spread(code.constantOf(accumulator, 1));
  if (counts)
    start.push_back(code.spread(code.constantOf(accumulator, 0)));
  Values result = window.walk(start, [&](ArrayRef<Index> source, ArrayRef<Value>, ValueRange in) {
    Value x = e.at(op.getX(), imagePlace(last, place[0], channel, source));
    Values next{combine(code, op, in[0], code.spread(widen(e, x, accumulator)))};
    if (counts)
      next.push_back(code.b.create<arith::AddFOp>(code.loc, in[1], one));
    return next;
  });
  if (isMax)
    return narrow(e, result[0], element);
  Value divisor = result[1];
  if (op.getCountPadding()) {
    // Padding counts, what lies beyond it (ceil_mode) does not.
    Window padded = windowOf(e, op, place, false);
    padded.windows = window.windows;
    for (size_t d = 0; d < padded.sizes.size(); ++d) {
      int64_t low = op.getLow()[d], high = op.getHigh()[d];
      padded.sizes[d] = code.add(padded.sizes[d], code.number(low + high));
      padded.place[d] = window.place[d];
    }
    SmallVector<int64_t> zero(padded.sizes.size(), 0);
    padded.low = zero;
    divisor = padded.walk({start[1]}, [&](ArrayRef<Index>, ArrayRef<Value>, ValueRange in) {
      return Values{code.b.create<arith::AddFOp>(code.loc, in[0], one)};
    })[0];
  }
  divisor = code.b.create<arith::MaxNumFOp>(code.loc, divisor, one); // dilation may miss the image
  Value mean = code.b.create<arith::DivFOp>(code.loc, result[0], divisor);
  return narrow(e, mean, element);
}

static Value sumOf(Code &code, Value x, Value y) {
  if (isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return code.b.create<arith::AddFOp>(code.loc, x, y);
  return code.b.create<arith::AddIOp>(code.loc, x, y);
}

/// Whether they are equal: false if either is NaN.
static Value equal(Code &code, Value x, Value y) {
  if (isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OEQ, x, y);
  return code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, x, y);
}

static Value multiplyAdd(Code &code, Value x, Value y, Value sum) {
  if (isa<FloatType>(getElementTypeOrSelf(sum.getType())))
    return code.b.create<math::FmaOp>(code.loc, x, y, sum);
  Value product = code.b.create<arith::MulIOp>(code.loc, x, y);
  return code.b.create<arith::AddIOp>(code.loc, sum, product);
}

namespace {
struct GroupedChannel {
  Index group, within;
};
} // namespace

/// The group that a channel is in, of `perGroup` channels each, and its number there.
static GroupedChannel splitChannel(Elements &e, const Index &channel, const Dim &perGroup,
                                   int64_t groups) {
  Code &code = e.code();
  Index zero = e.uniform(code.number(0));
  if (groups == 1)
    return {zero, channel};
  if (perGroup.isConstant(1))
    return {channel, zero};
  Value lanes = e.lanesOf(channel), size = e.kernel.dim(perGroup);
  if (Code::isVector(lanes))
    size = code.spread(size);
  return {e.fromLanes(code.b.createOrFold<arith::DivUIOp>(code.loc, lanes, size)),
          e.fromLanes(code.b.createOrFold<arith::RemUIOp>(code.loc, lanes, size))};
}

/// The number of its first channel.
static Index firstOfGroup(Elements &e, const Index &group, const Dim &perGroup) {
  Code &code = e.code();
  if (auto known = perGroup.constant())
    return e.scale(group, *known);
  if (group.isUniform() && Code::constant(group.base).value_or(1) == 0)
    return group;
  return e.fromLanes(code.b.create<arith::MulIOp>(code.loc, code.spread(e.lanesOf(group)),
                                                  code.spread(e.kernel.dim(perGroup))));
}

/// Sums x[n, group's channel i, source] * w over the group's channels and the window.
template <typename Op>
static Value convElement(Elements &e, Op op, ArrayRef<Index> place, bool transposed) {
  Code &code = e.code();
  bool last = op.getChannelsLast();
  Type element = graph::storageOf(op.getResult()), accumulator = accumulatorType(element);
  Window window = windowOf(e, op, place, transposed);
  Values filter = e.sizesOf(op.getW());
  window.windows = Values(ArrayRef<Value>(filter).drop_front(2));
  const Index &channel = last ? place.back() : place[1];
  DimVector x = graph::dimsOf(op.getX()), w = graph::dimsOf(op.getW());
  Dim inputs = (last ? x.back() : x[1]).floorDiv(Dim(op.getGroups()));
  Dim outputs = transposed ? w[1] : w[0].floorDiv(Dim(op.getGroups()));
  auto [group, withinGroup] = splitChannel(e, channel, outputs, op.getGroups());
  Value inputCount = e.kernel.dim(inputs);
  Index firstInput = firstOfGroup(e, group, inputs);
  Values start{code.spread(code.constantOf(accumulator, 0))};
  Value total =
      window.walk(start, [&](ArrayRef<Index> source, ArrayRef<Value> taps, ValueRange in) {
        return foldScoped(e, code.number(0), inputCount, in, [&](Value i, ValueRange sum) {
          Index input = e.shift(firstInput, i);
          Value x = e.at(op.getX(), imagePlace(last, place[0], input, source));
          Indices weight =
              transposed ? Indices{input, withinGroup} : Indices{channel, e.uniform(i)};
          for (Value tap : taps)
            weight.push_back(e.uniform(tap));
          Value y = e.at(op.getW(), weight);
          x = widen(e, x, accumulator, graph::storageOf(op.getX()).isUnsignedInteger());
          y = widen(e, y, accumulator, graph::storageOf(op.getW()).isUnsignedInteger());
          return Values{multiplyAdd(code, code.spread(x), code.spread(y), sum[0])};
        });
      })[0];
  return narrow(e, total, element);
}

static Index sumOf(Elements &e, const Index &x, const Index &y) {
  if (x.isUniform())
    return e.shift(y, x.base);
  if (y.isUniform())
    return e.shift(x, y.base);
  return e.fromLanes(e.code().b.create<arith::AddIOp>(e.code().loc, e.lanesOf(x), e.lanesOf(y)));
}

/// Sums x[n, group's channel c, source] * dy[n, o, position] over images and positions: a window
/// whose places are the positions, `stride` apart.
static Value filterGradientElement(Elements &e, graph::ConvFilterGradientOp op,
                                   ArrayRef<Index> place) {
  Code &code = e.code();
  bool last = op.getChannelsLast();
  Type element = graph::storageOf(op.getResult()), accumulator = accumulatorType(element);
  Values x = e.sizesOf(op.getX()), dy = e.sizesOf(op.getDy());
  DimVector w = graph::dimsOf(op.getResult());
  size_t spatial = x.size() - 2, first = last ? 1 : 2;
  Window window(e, Values(ArrayRef<Value>(x).slice(first, spatial)), Indices(place.drop_front(2)),
                op.getDilations(), op.getStrides(), op.getLow(), false);
  window.windows = Values(ArrayRef<Value>(dy).slice(first, spatial));
  Dim perGroup = w[0].floorDiv(Dim(op.getGroups()));
  Index group = splitChannel(e, place[0], perGroup, op.getGroups()).group;
  Index input = sumOf(e, firstOfGroup(e, group, w[1]), place[1]);
  Values start{code.spread(code.constantOf(accumulator, 0))};
  Value total =
      window.walk(start, [&](ArrayRef<Index> source, ArrayRef<Value> position, ValueRange in) {
        Indices at;
        for (Value index : position)
          at.push_back(e.uniform(index));
        return foldScoped(e, code.number(0), dy[0], in, [&](Value n, ValueRange sum) {
          Index image = e.uniform(n);
          Value pixel = e.at(op.getX(), imagePlace(last, image, input, source));
          Value slope = e.at(op.getDy(), imagePlace(last, image, place[0], at));
          pixel = widen(e, pixel, accumulator);
          slope = widen(e, slope, accumulator);
          return Values{multiplyAdd(code, code.spread(pixel), code.spread(slope), sum[0])};
        });
      })[0];
  return narrow(e, total, element);
}

using AtWindow = llvm::function_ref<Values(ArrayRef<Index> window, ValueRange carried)>;

/// Visits the windows without dilation that hold a place which all lanes share: along each
/// dimension they are neighbours.
static Values forEachHolder(Elements &e, graph::UnpoolOp op, ArrayRef<Index> place, Indices chosen,
                            ValueRange carried, AtWindow visit) {
  size_t d = chosen.size();
  if (d == place.size())
    return visit(chosen, carried);
  Code &code = e.code();
  int64_t stride = op.getStrides()[d], window = op.getWindow()[d];
  Value count = e.sizesOf(op.getShare())[d + (op.getChannelsLast() ? 1 : 2)];
  Value last = code.add(place[d].base, code.number(op.getLow()[d]));
  Value first =
      code.max(code.ceilDiv(code.sub(last, code.number(window - 1)), stride), code.number(0));
  Value end = code.min(code.add(code.div(last, code.number(stride)), code.number(1)), count);
  return foldScoped(e, first, end, carried, [&](Value number, ValueRange in) {
    Indices next(chosen);
    next.push_back(e.uniform(number));
    return forEachHolder(e, op, place, next, in, visit);
  });
}

/// Visits all windows that hold a place.
static Values forEachWindow(Elements &e, graph::UnpoolOp op, ArrayRef<Index> place,
                            ValueRange carried, AtWindow visit) {
  bool isShared = llvm::all_of(place, [](const Index &index) { return index.isUniform(); });
  if (isShared && llvm::all_of(op.getDilations(), [](int64_t d) { return d == 1; }))
    return forEachHolder(e, op, place, {}, carried, visit);
  Values sizes = e.sizesOf(op.getShare());
  size_t first = op.getChannelsLast() ? 1 : 2;
  Window window(e, Values(ArrayRef<Value>(sizes).slice(first, place.size())), Indices(place),
                op.getStrides(), op.getDilations(), op.getLow(), true);
  for (int64_t size : op.getWindow())
    window.windows.push_back(e.code().number(size));
  return window.walk(Values(carried), [&](ArrayRef<Index> source, ArrayRef<Value>, ValueRange in) {
    return visit(source, in);
  });
}

/// Sums what the windows give that hold this place.
static Value unpoolElement(Elements &e, graph::UnpoolOp op, ArrayRef<Index> place) {
  Code &code = e.code();
  bool last = op.getChannelsLast();
  Type element = graph::storageOf(op.getResult()), accumulator = accumulatorType(element);
  const Index &channel = last ? place.back() : place[1];
  ValueRange images = op.getImages();
  Value x = images.empty() ? Value() : code.spread(e.at(images[0], place));
  Value zero = code.spread(code.constantOf(accumulator, 0));
  auto add = [&](ArrayRef<Index> window, ValueRange in) -> Values {
    Indices from = imagePlace(last, place[0], channel, window);
    Value given = code.spread(widen(e, e.at(op.getShare(), from), accumulator));
    Value sum = sumOf(code, in[0], given);
    if (!x)
      return {sum};
    Value isEqual = equal(code, x, code.spread(e.at(images[1], from)));
    return {code.b.create<arith::SelectOp>(code.loc, isEqual, sum, in[0])};
  };
  ArrayRef<Index> spatial = place.slice(last ? 1 : 2, place.size() - 2);
  return narrow(e, forEachWindow(e, op, spatial, zero, add)[0], element);
}

Value defineWindow(Elements &e, Operation *op, ArrayRef<Index> place) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](graph::PoolOp op) { return poolElement(e, op, place); })
      .Case([&](graph::ConvOp op) { return convElement(e, op, place, false); })
      .Case([&](graph::ConvTransposeOp op) { return convElement(e, op, place, true); })
      .Case([&](graph::ConvFilterGradientOp op) { return filterGradientElement(e, op, place); })
      .Case([&](graph::UnpoolOp op) { return unpoolElement(e, op, place); })
      .Default([](Operation *) { return Value(); });
}

} // namespace heddle::lower
