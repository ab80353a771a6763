// Fourier: DFT and STFT as products with matrices of cosines and sines.
//
// The angle 2 pi i k / length is taken from (i k) mod length, in integers, so that it stays exact
// for long signals.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Walk.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
struct Transform {
  Value counter; // 0 .. length - 1, i64: its size is the length of the transform
  bool inverse, onesided;
  Dim length() const { return dimsOf(counter)[0]; }
};
struct Complex {
  Value real, imaginary; // null imaginary: 0
};
} // namespace

static Dim smaller(const Dim &a, const Dim &b) { return a == b ? a : Dim::min(a, b); }

/// 2 pi ((i * k) mod length) / length for i below rows and k below columns, as f64: what is 0 in
/// the table has to be 0 in every sum.
static Value anglesOf(Node &n, const Transform &t, const Dim &rows, const Dim &columns) {
  Type element = n.builder.getF64Type();
  Value row = n.unsqueeze(n.sliceAlong(t.counter, 0, Dim(0), rows), {1});
  Value column = n.sliceAlong(t.counter, 0, Dim(0), columns);
  Value length = sizeNumber(n, t.length(), n.i64());
  Value turn = n.binary<ModOp>(n.mul(row, column), length);
  return n.mul(n.div(n.cast(turn, element), n.cast(length, element)), 2 * M_PI);
}

/// The transform of x [..., size] along its last dimension; entries beyond the length are left out,
/// missing ones are 0.
static Complex transform(Node &n, Complex x, const Transform &t) {
  Type element = elementOf(x.real);
  Dim size = dimsOf(x.real).back(), length = t.length();
  Dim half = length.floorDiv(Dim(2)) + Dim(1);
  bool isReal = t.inverse && t.onesided;
  Dim rows = smaller(size, isReal ? half : length),
      columns = t.onesided && !t.inverse ? half : length;
  int64_t last = rankOf(x.real) - 1;
  x.real = n.sliceAlong(x.real, last, Dim(0), rows);
  if (x.imaginary)
    x.imaginary = n.sliceAlong(x.imaginary, last, Dim(0), rows);
  Value angles = anglesOf(n, t, rows, columns);
  Value cosine = n.cast(n.unary<CosOp>(angles), element);
  Value sine = n.cast(n.unary<SinOp>(angles), element);
  if (t.inverse) {
    Value count = sizeNumber(n, length, element);
    cosine = n.div(cosine, count);
    sine = n.unary<NegOp>(n.div(sine, count));
  }
  if (isReal) { // each frequency but the first and the middle one stands for its conjugate, too
    Value place = n.sliceAlong(t.counter, 0, Dim(0), rows), one = n.integerScalar(n.i64(), 1);
    Value twice = n.mul(place, n.integerScalar(n.i64(), 2));
    Value isAlone = n.binary<OrOp>(n.compare<LessOp>(place, one),
                                   n.compare<EqualOp>(twice, sizeNumber(n, length, n.i64())));
    Value weight = n.unsqueeze(n.select(isAlone, n.scalar(element, 1), n.scalar(element, 2)), {1});
    cosine = n.mul(cosine, weight);
    sine = n.mul(sine, weight);
  }
  // (re + j im) (cos - j sin)
  Complex y = {n.matmul(x.real, cosine), Value()};
  if (x.imaginary)
    y.real = n.add(y.real, n.matmul(x.imaginary, sine));
  if (isReal)
    return y;
  y.imaginary = n.unary<NegOp>(n.matmul(x.real, sine));
  if (x.imaginary)
    y.imaginary = n.add(y.imaginary, n.matmul(x.imaginary, cosine));
  return y;
}

/// Real and imaginary parts of x [..., 1 or 2].
static Complex split(Node &n, Value x) {
  int64_t last = rankOf(x) - 1;
  Dim parts = dimsOf(x)[last];
  if (parts.constant() && !parts.isConstant(1) && !parts.isConstant(2))
    refuse("the last dimension must be 1 or 2, for real or complex numbers, but is " + parts.str());
  if (!parts.constant()) { // a missing imaginary part is 0
    DimVector low(last + 1, Dim(0)), high(last + 1, Dim(0));
    high[last] = Dim(2) - parts;
    x = n.pad(x, n.scalar(elementOf(x), 0), low, high);
  }
  auto part = [&](int64_t i) { return n.squeeze(n.sliceAlong(x, last, Dim(i), Dim(1)), {last}); };
  return {part(0), parts.isConstant(1) ? Value() : part(1)};
}

static Value join(Node &n, Complex y) {
  int64_t last = rankOf(y.real);
  Value real = n.unsqueeze(y.real, {last});
  return y.imaginary ? n.concat({real, n.unsqueeze(y.imaginary, {last})}, last) : real;
}

static Value dftAlong(Node &n, int64_t axis, bool inverse, bool onesided) {
  Value x = n.in(0);
  int64_t rank = rankOf(x);
  Type wide = wideType(n, elementOf(x));
  Dim size = dimsOf(x)[axis];
  Dim natural = inverse && onesided ? (size - Dim(1)) * Dim(2) : size;
  Value counter = n.has(1) ? countUpTo(n, n.in(1), "dft_length") : n.iota({natural}, 0, n.i64());
  Complex parts = split(n, n.cast(x, wide));
  if (onesided && !inverse && dimsOf(x)[rank - 1].isConstant(2))
    refuse("'onesided' 1 needs a real input, but the last dimension is 2");
  if (onesided && !inverse)
    parts.imaginary = Value();
  auto toLast = [&](Value part) { // the axis at the end
    Ints order;
    for (int64_t i = 0; i < rank - 1; ++i)
      if (i != axis)
        order.push_back(i);
    order.push_back(axis);
    return part ? n.transpose(part, order) : part;
  };
  auto back = [&](Value part) {
    Ints order;
    for (int64_t i = 0; i < rank - 1; ++i)
      order.push_back(i < axis ? i : i == axis ? rank - 2 : i - 1);
    return part ? n.transpose(part, order) : part;
  };
  Complex y =
      transform(n, {toLast(parts.real), toLast(parts.imaginary)}, {counter, inverse, onesided});
  return n.cast(join(n, {back(y.real), back(y.imaginary)}), elementOf(x));
}

static void importDft(Node &n) {
  int64_t rank = rankOf(n.in(0));
  bool inverse = n.getInt("inverse", 0), onesided = n.getInt("onesided", 0);
  if (rank < 2)
    refuse("the input must have rank 2 or more, but has " + Twine(rank));
  auto along = [&](int64_t axis) -> Value {
    if (axis == rank - 1)
      refuse("'axis' cannot be the last one, which holds real and imaginary parts");
    return dftAlong(n, axis, inverse, onesided);
  };
  if (n.opset < 20 || !n.has(2))
    return n.set(along(n.axis(n.opset < 20 ? n.getInt("axis", 1) : -2, rank)));
  if (shapeValue(n.in(2)))
    return n.set(onAxis(n, n.in(2), rank, along));
  // Only the run knows the axis: it cannot be the last one.
  n.set(onAxis(n, n.in(2), rank, [&](int64_t axis) { return along(std::min(axis, rank - 2)); }));
}

/// frames [batch, frames, length] of one part of the signal [batch, size], times the window.
static void importStft(Node &n) {
  Value x = n.in(0);
  Type element = elementOf(x), wide = wideType(n, element);
  DimVector dims = dimsOf(x);
  if (dims.size() != 3 && dims.size() != 2)
    refuse("the signal must have rank 3, [batch, size, 1 or 2], but has " + Twine(dims.size()));
  if (dims.size() == 2)
    x = n.unsqueeze(x, {2});
  Value step = n.cast(n.reshape(n.in(1), {}), n.i64());
  Value counter = n.has(3)   ? countUpTo(n, n.in(3), "frame_length")
                  : n.has(2) ? n.iota({dimsOf(n.in(2))[0]}, 0, n.i64())
                             : Value();
  if (!counter)
    refuse("either 'window' or 'frame_length' must be given");
  Dim length = dimsOf(counter)[0];
  Value room = sizeNumber(n, dims[1] - length, n.i64());
  Value count = n.add(n.div(room, step), n.integerScalar(n.i64(), 1));
  auto known = shapeValue(step);
  Value number = known && (*known)[0].constant().value_or(0) > 0
                     ? n.iota({(dims[1] - length).floorDiv((*known)[0]) + Dim(1)}, 0, n.i64())
                     : countUpTo(n, count, "frames");
  Value place = n.add(n.mul(n.unsqueeze(number, {1}), step), counter); // [frames, length]
  bool onesided = n.getInt("onesided", 1);
  Complex parts = split(n, n.cast(x, wide));
  if (onesided)
    parts.imaginary = Value();
  auto frames = [&](Value part) {
    if (!part)
      return part;
    Value cut = n.gather(part, place, 1);
    if (!n.has(2))
      return cut;
    return n.broadcast(n.mul(cut, n.cast(n.in(2), wide)), dimsOf(cut));
  };
  Complex y =
      transform(n, {frames(parts.real), frames(parts.imaginary)}, {counter, false, onesided});
  n.set(n.cast(join(n, y), element));
}

OpRows fourierRows() {
  static const OpRow rows[] = {
      {"DFT", "", 17, 27, importDft},
      {"STFT", "", 17, 27, importStft},
  };
  return rows;
}

} // namespace heddle::onnx
