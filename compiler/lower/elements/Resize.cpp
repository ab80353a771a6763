// Resize: an element of a resampled tensor: per axis up to four source places with weights, then
// their product.

#include "compiler/graph/Typical.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

namespace {
struct Tap {
  Index source;
  Value weight; // f32; null means 1
};
/// Taps that sample one axis at one place.
struct Axis {
  SmallVector<Tap, 4> taps;
};

struct Sampler {
  Elements &e;
  graph::ResizeOp op;
  Code &code = e.code();
  Type f32 = code.b.getF32Type();
  /// Type of weighted elements and their sums.
  Type sumType = graph::storageOf(op.getX()).isF64() ? Type(code.b.getF64Type()) : f32;

  Value number(Value like, double value) {
    Value scalar = code.constantOf(f32, value);
    return Code::isVector(like) ? code.spread(scalar) : scalar;
  }
  Value toFloat(Value integer) {
    Type type = Code::isVector(integer) ? Type(code.vectorOf(f32)) : f32;
    return code.b.create<arith::SIToFPOp>(code.loc, type, integer);
  }
  template <typename Op> Value make(Value x, Value y) { return code.b.create<Op>(code.loc, x, y); }
  Type wordsLike(Value like) {
    Type i32 = code.b.getI32Type();
    return Code::isVector(like) ? Type(code.vectorOf(i32)) : i32;
  }

  /// ONNX's coordinate_transformation_mode, in f32 as its reference does it. Places have 32 bits,
  /// which machines convert a vector at a time: floats past 2^31 are 256 apart, so that no axis is
  /// that long.
  Value coordinate(size_t d, const Index &place, Value size, Value resultSize) {
    Value at = e.lanesOf(place);
    at = toFloat(code.b.createOrFold<arith::TruncIOp>(code.loc, wordsLike(at), at));
    auto like = [&](Value value) { return Code::isVector(at) ? code.spread(value) : value; };
    Value length = toFloat(size), resultLength = toFloat(resultSize);
    Value scale = op.getScales()[d] != 0 ? code.constantOf(f32, op.getScales()[d])
                                         : make<arith::DivFOp>(resultLength, length);
    StringRef mode = op.getCoordinates();
    if (mode == "asymmetric")
      return make<arith::DivFOp>(at, like(scale));
    if (mode == "align_corners") {
      // Measured by the scale, also where the size is rounded. One element shows the first one.
      Value zero = code.constantOf(f32, 0), one = code.constantOf(f32, 1);
      Value last = make<arith::SubFOp>(make<arith::MulFOp>(length, scale), one);
      Value isSingle =
          code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OEQ, last, zero);
      auto choose = [&](Value single, Value other) {
        return code.b.create<arith::SelectOp>(code.loc, isSingle, single, other);
      };
      Value extent = choose(zero, make<arith::SubFOp>(length, one)), divisor = choose(one, last);
      return make<arith::DivFOp>(make<arith::MulFOp>(at, like(extent)), like(divisor));
    }
    Value half = number(at, 0.5);
    Value middle = make<arith::DivFOp>(make<arith::AddFOp>(at, half), like(scale));
    if (mode == "tf_half_pixel_for_nn")
      return middle;
    Value x = make<arith::SubFOp>(middle, half);
    if (mode == "half_pixel_symmetric") {
      Value ideal = make<arith::MulFOp>(length, scale);
      Value adjustment = make<arith::DivFOp>(resultLength, ideal);
      Value center = make<arith::DivFOp>(length, code.constantOf(f32, 2));
      Value offset =
          make<arith::MulFOp>(center, make<arith::SubFOp>(code.constantOf(f32, 1), adjustment));
      return make<arith::AddFOp>(like(offset), x);
    }
    if (mode == "pytorch_half_pixel") {
      Value isOne = code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::sle, resultSize,
                                                 code.number(1));
      Value condition = Code::isVector(at) ? code.spread(isOne) : isOne;
      return code.b.create<arith::SelectOp>(code.loc, condition, number(at, 0), x);
    }
    return x; // half_pixel
  }

  /// Whether neighbours of the result show the same element or neighbours, mostly.
  bool enlarges(size_t d) {
    double scale = op.getScales()[d];
    return scale ? scale >= 1
                 : graph::typicalSize(op, graph::dimsOf(op.getResult())[d]) >=
                       graph::typicalSize(op, graph::dimsOf(op.getX())[d]);
  }

  Index clamped(size_t d, Value place, Value size) {
    // The greatest float below 2^31 keeps what is past the end in the type; NaN is the first place.
    place = make<arith::MinNumFOp>(make<arith::MaxNumFOp>(place, number(place, 0)),
                                   number(place, 2147483520.0));
    Value lanes = code.b.create<arith::FPToSIOp>(code.loc, wordsLike(place), place);
    Value last = code.max(code.sub(size, code.number(1)), code.number(0));
    last = code.min(last, code.number(INT32_MAX));
    last = code.b.createOrFold<arith::TruncIOp>(code.loc, code.b.getI32Type(), last);
    Index index =
        e.fromLanes(make<arith::MinSIOp>(lanes, Code::isVector(lanes) ? code.spread(last) : last));
    index.isRising = index.free && enlarges(d);
    return index;
  }

  Value nearestOf(Value x) {
    StringRef mode = op.getNearest();
    if (mode == "floor")
      return code.b.create<math::FloorOp>(code.loc, x);
    if (mode == "ceil")
      return code.b.create<math::CeilOp>(code.loc, x);
    Value half = number(x, 0.5);
    if (mode == "round_prefer_ceil")
      return code.b.create<math::FloorOp>(code.loc, make<arith::AddFOp>(x, half));
    return code.b.create<math::CeilOp>(code.loc, make<arith::SubFOp>(x, half));
  }

  /// Keys' cubic kernel at the four distances 1 + t, t, 1 - t, 2 - t.
  SmallVector<Value, 4> cubicWeights(Value t) {
    double a = op.getCubicCoefficient().convertToDouble();
    auto poly = [&](Value x, std::initializer_list<double> coefficients) {
      Value sum = number(x, 0);
      for (double c : coefficients)
        sum = make<arith::AddFOp>(make<arith::MulFOp>(sum, x), number(x, c));
      return sum;
    };
    Value one = number(t, 1);
    auto inner = [&](Value x) { return poly(x, {a + 2, -(a + 3), 0, 1}); };
    auto outer = [&](Value x) { return poly(x, {a, -5 * a, 8 * a, -4 * a}); };
    Value back = make<arith::SubFOp>(one, t);
    return {outer(make<arith::AddFOp>(t, one)), inner(t), inner(back),
            outer(make<arith::AddFOp>(back, one))};
  }

  /// Times that each element of x is shown along the axis, if that is all that sampling does.
  std::optional<int64_t> repeats(size_t d, const Dim &from, const Dim &to) {
    StringRef coordinates = op.getCoordinates(), nearest = op.getNearest();
    bool isFloor = coordinates == "asymmetric" && nearest == "floor";
    bool isRound = coordinates == "half_pixel" && nearest.starts_with("round");
    if (op.getMode() != "nearest" || !(isFloor || isRound))
      return std::nullopt;
    auto typical = [](StringRef) { return std::optional<int64_t>(64); };
    int64_t count = op.getScales()[d];
    if (int64_t size = from.evaluate(typical).value_or(0); count == 0 && size > 0)
      count = to.evaluate(typical).value_or(0) / size;
    bool isGiven = op.getScales()[d] == 0 || op.getScales()[d] == count;
    return isGiven && count > 0 && to == from * Dim(count) ? std::optional(count) : std::nullopt;
  }

  Axis sample(size_t d, const Index &place, const Dim &from, const Dim &to) {
    if (keepsAxis(op, d))
      return {{{place, Value()}}};
    if (auto count = repeats(d, from, to); count && place.isUniform())
      return {{{e.uniform(code.div(place.base, code.number(*count))), Value()}}};
    Value size = e.kernel.dim(from);
    Value x = coordinate(d, place, size, e.kernel.dim(to));
    if (op.getMode() == "nearest")
      return {{{clamped(d, nearestOf(x), size), Value()}}};
    Value floor = code.b.create<math::FloorOp>(code.loc, x);
    Value t = make<arith::SubFOp>(x, floor);
    Axis axis;
    if (op.getMode() == "linear") {
      Value next = make<arith::AddFOp>(floor, number(x, 1));
      axis.taps = {{clamped(d, floor, size), make<arith::SubFOp>(number(x, 1), t)},
                   {clamped(d, next, size), t}};
      return axis;
    }
    auto weights = cubicWeights(t);
    Value total = number(x, 0);
    for (int i = 0; i < 4; ++i) {
      Value at = make<arith::AddFOp>(floor, number(x, i - 1));
      if (op.getExcludeOutside()) {
        Value last = toFloat(code.sub(size, code.number(1)));
        Value low =
            code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OGE, at, number(x, 0));
        Value high = code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OLE, at,
                                                  Code::isVector(at) ? code.spread(last) : last);
        weights[i] = code.b.create<arith::SelectOp>(code.loc, make<arith::AndIOp>(low, high),
                                                    weights[i], number(x, 0));
        total = make<arith::AddFOp>(total, weights[i]);
      }
      axis.taps.push_back({clamped(d, at, size), weights[i]});
    }
    if (op.getExcludeOutside())
      for (Tap &tap : axis.taps)
        tap.weight = make<arith::DivFOp>(tap.weight, total);
    return axis;
  }

  Value weigh(Value value, Value weight) {
    if (!weight)
      return value;
    weight = widen(e, weight, sumType);
    if (Code::isVector(value) != Code::isVector(weight)) {
      value = code.spread(value);
      weight = code.spread(weight);
    }
    return make<arith::MulFOp>(value, weight);
  }

  Value sum(ArrayRef<Axis> axes, size_t d, Indices &source) {
    if (d == axes.size())
      return e.at(op.getX(), source);
    Value total;
    for (const Tap &tap : axes[d].taps) {
      source.push_back(tap.source);
      Value value = sum(axes, d + 1, source);
      source.pop_back();
      if (tap.weight) {
        value = weigh(widen(e, value, sumType), tap.weight);
        if (total && Code::isVector(total) != Code::isVector(value)) {
          total = code.spread(total);
          value = code.spread(value);
        }
        total = total ? make<arith::AddFOp>(total, value) : value;
      } else {
        total = value;
      }
    }
    return total;
  }
};
} // namespace

bool keepsAxis(graph::ResizeOp op, size_t axis) {
  double scale = op.getScales()[axis];
  return graph::dimsOf(op.getX())[axis] == graph::dimsOf(op.getResult())[axis] &&
         (scale == 0 || scale == 1) && op.getCoordinates() != "tf_crop_and_resize";
}

Value defineResize(Elements &e, Operation *op, ArrayRef<Index> place) {
  auto resize = dyn_cast<graph::ResizeOp>(op);
  if (!resize)
    return {};
  Sampler sampler{e, resize};
  DimVector from = graph::dimsOf(resize.getX()), to = graph::dimsOf(resize.getResult());
  SmallVector<Axis> axes;
  for (size_t d = 0; d < place.size(); ++d)
    axes.push_back(sampler.sample(d, place[d], from[d], to[d]));
  Indices source;
  Value value = sampler.sum(axes, 0, source);
  Type element = graph::storageOf(resize.getX());
  return getElementTypeOrSelf(value.getType()) == element ? value : narrow(e, value, element);
}

} // namespace heddle::lower
