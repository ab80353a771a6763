// Fourier: DFT and STFT as graph.fourier.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Walk.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// x [..., 1 or 2], transformed along `axis`.
static Value transform(Node &n, Value x, int64_t axis, const Dim &length, bool inverse,
                       bool onesided) {
  DimVector dims = dimsOf(x);
  dims[axis] = onesided && !inverse ? length.floorDiv(Dim(2)) + Dim(1) : length;
  dims.back() = Dim(onesided && inverse ? 1 : 2);
  Builder &b = n.builder;
  return n.typed<FourierOp>(n.tensor(dims, elementOf(x)), x,
                            {n.integer("axis", axis),
                             b.getNamedAttr("length", dimsAttr(n.context(), length)),
                             n.flag("inverse", inverse), n.flag("onesided", onesided)});
}

static void checkParts(Value x) {
  Dim parts = dimsOf(x).back();
  if (parts.constant() && !parts.isConstant(1) && !parts.isConstant(2))
    refuse("the last dimension must be 1 or 2, for real or complex numbers, but is " + parts.str());
}

/// The number in a scalar as a size.
static Dim lengthOf(Node &n, size_t i, StringRef what) {
  return n.bindSizes(n.reshape(n.in(i), {}), what)[0];
}

static Value dftAlong(Node &n, int64_t axis, bool inverse, bool onesided) {
  Value x = n.in(0);
  Dim size = dimsOf(x)[axis];
  Dim natural = inverse && onesided ? (size - Dim(1)) * Dim(2) : size;
  if (onesided && !inverse && dimsOf(x).back().isConstant(2))
    refuse("'onesided' 1 needs a real input, but the last dimension is 2");
  checkParts(x);
  Dim length = n.has(1) ? lengthOf(n, 1, "dft_length") : natural;
  Value wide = n.cast(x, wideType(n, elementOf(x)));
  return n.cast(transform(n, wide, axis, length, inverse, onesided), elementOf(x));
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
  // The axis is known only at run time: it cannot be the last one.
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
  bool onesided = n.getInt("onesided", 1), isReal = dimsOf(x)[2].isConstant(1);
  checkParts(x);
  x = n.cast(x, wide);
  Value frames = n.gather(x, place, 1); // [batch, frames, length, 1 or 2]
  if (n.has(2)) {
    Value window = n.unsqueeze(n.cast(n.in(2), wide), {1});
    frames = n.broadcast(n.mul(frames, window), dimsOf(frames));
  }
  Value bins = transform(n, frames, 2, length, false, onesided && isReal);
  if (onesided && !isReal) // the other half is no mirror here, but is left out all the same
    bins = n.sliceAlong(bins, 2, Dim(0), length.floorDiv(Dim(2)) + Dim(1));
  n.set(n.cast(bins, element));
}

OpRows fourierRows() {
  static const OpRow rows[] = {
      {"DFT", "", 17, 27, importDft},
      {"STFT", "", 17, 27, importStft},
  };
  return rows;
}

} // namespace heddle::onnx
