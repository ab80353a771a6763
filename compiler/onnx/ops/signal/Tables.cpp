// Tables: windows and filter banks of audio, whose sizes may be known only at run time.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// sum over i of weights[i] * cos(2 pi i n / period) for n from 0 to size - 1.
static void cosineSum(Node &n, ArrayRef<double> weights) {
  Type element = n.getElement("output_datatype", n.f32());
  // An integer is cut off, so that 1 less a rounding would be 0.
  Type wide = element.isF32() ? element : n.builder.getF64Type();
  Value places = countUpTo(n, n.in(0), "size");
  Value period = n.cast(n.reshape(n.in(0), {}), wide);
  if (!n.getInt("periodic", 1)) // a window of one element has the period 1
    period = n.max(n.add(period, -1), 1);
  Value turn = n.div(n.cast(places, wide), period), sum;
  // Adds from the last to the first: in this order the weights of each window add up to 1 exactly.
  for (size_t i = weights.size(); i-- > 0;) {
    Value term = i ? n.mul(n.unary<CosOp>(n.mul(turn, 2 * M_PI * i)), weights[i])
                   : n.scalar(wide, weights[i]);
    sum = sum ? n.add(sum, term) : term;
  }
  n.set(n.cast(sum, element));
}

static void importHann(Node &n) { cosineSum(n, {0.5, -0.5}); }
static void importHamming(Node &n) { cosineSum(n, {25.0 / 46, -21.0 / 46}); }
static void importBlackman(Node &n) { cosineSum(n, {0.42, -0.5, 0.08}); }

/// Triangles over the bins of a spectrum, whose corners are equally spaced in mels.
static void importMelWeightMatrix(Node &n) {
  Type wide = n.builder.getF64Type(), element = n.getElement("output_datatype", n.f32());
  Type narrow = element.isF64() ? wide : n.f32(); // type of bins, which are whole numbers
  auto scalar = [&](size_t i) { return n.reshape(n.in(i), {}); };
  Value bands = n.cast(scalar(0), n.i64()), length = n.cast(scalar(1), n.i64());
  auto mel = [&](Value hertz) { // 2595 log10(1 + hertz / 700)
    return n.mul(n.unary<Log1pOp>(n.div(n.cast(hertz, wide), 700)), 2595 / std::log(10.0));
  };
  Value low = mel(scalar(3)), high = mel(scalar(4));
  Value step = n.div(n.sub(high, low), n.add(n.cast(bands, wide), 2));
  Dim count = n.bindSizes(bands, "num_mel_bins")[0];
  Value rate = n.cast(scalar(2), wide), points = n.add(n.cast(length, wide), 1);
  // The bins of the corners; neighbouring bands share two.
  Value mels = n.add(n.mul(countUp(n, count + Dim(2), wide), step), low);
  Value hertz = n.mul(n.add(n.binary<PowOp>(n.scalar(wide, 10), n.div(mels, 2595)), -1), 700);
  Value corners = n.cast(n.unary<FloorOp>(n.div(n.mul(points, hertz), rate)), narrow);
  auto corner = [&](int64_t i) { return n.sliceAlong(corners, 0, Dim(i), count); };
  Value left = corner(0), centre = corner(1), right = corner(2);
  Value half = n.add(n.div(length, n.integerScalar(n.i64(), 2)), n.integerScalar(n.i64(), 1));
  Value bin = n.unsqueeze(n.cast(countUpTo(n, half, "dft_length"), narrow), {1});
  Value zero = n.scalar(narrow, 0), one = n.scalar(narrow, 1);
  Value rise = n.sub(centre, left), fall = n.sub(right, centre);
  Value rises =
      n.binary<AndOp>(n.compare<GreaterEqualOp>(bin, left), n.compare<LessEqualOp>(bin, centre));
  Value falls =
      n.binary<AndOp>(n.compare<GreaterEqualOp>(bin, centre), n.compare<LessOp>(bin, right));
  // A side of no bins is 1 at its only one.
  Value isFlat = n.compare<EqualOp>(rise, zero);
  Value distance =
      n.select(falls, n.sub(right, bin), n.sub(bin, n.select(isFlat, n.sub(left, one), left)));
  Value width = n.select(falls, fall, n.select(isFlat, one, rise));
  Value isSome = n.binary<OrOp>(rises, falls);
  n.set(n.cast(n.select(isSome, n.div(distance, width), zero), element));
}

OpRows signalRows() {
  static const OpRow rows[] = {
      {"HannWindow", "", 17, 27, importHann},
      {"HammingWindow", "", 17, 27, importHamming},
      {"BlackmanWindow", "", 17, 27, importBlackman},
      {"MelWeightMatrix", "", 17, 27, importMelWeightMatrix},
  };
  return rows;
}

} // namespace heddle::onnx
