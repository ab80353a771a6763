// Row: a vector of channels of a row of results, in tiles of neighbouring pixels.
//
// Where the width is known, tiles are about equal, and which taps of those at the left and right
// border lie inside is known as well. Else pixels near the borders test each tap, those between
// test none. Rows of the window that lie outside of the image are left out by a branch, or by a
// loop's bounds where the window is large.

#include "compiler/lower/window/Channelwise.h"

using namespace mlir;

namespace heddle::lower {

/// Most tiles that are written out one by one in a row whose width is known.
static constexpr int64_t kMostAtBorder = 4;

/// Pixels of a tile: besides sums, a few registers hold weights and pixels of the image.
int64_t Channelwise::pixels() {
  constexpr int64_t kOthers = 4;
  int64_t most = (kernel.machine.registers - kOthers) / (areCounted() ? 2 : 1);
  return std::min(schedule.knob("pixels", 8), most);
}

/// Weights of up to two thirds of the registers are kept there, or where the registers do not do
/// are operands in memory; more are read a row of the window at a time, in a loop
/// (bench/notes/2026-11-21-kernels.md).
bool Channelwise::isUnrolled() { return 3 * taps() <= 2 * kernel.machine.registers; }

Value Channelwise::weight(Elements &e, Value channel, Value tap) {
  Code &code = e.code();
  Value at = code.add(code.mul(channel, code.number(taps())),
                      code.mul(tap, code.number(kernel.machine.lanes)));
  Value weights = weightData >= 0 ? kernel.data(weightData) : kernel.temporary(weightTemporary);
  return code.loadLanes(sumType, weights, at, {});
}

Values Channelwise::keptWeights(Elements &e, Value channel) {
  Values weights;
  if (conv && isUnrolled())
    for (int64_t tap = 0; tap < taps(); ++tap)
      weights.push_back(weight(e, channel, e.code().number(tap)));
  return weights;
}

/// Columns whose whole window is inside begin here.
Dim Channelwise::firstInside() const {
  Dim left((low[1] + strides[1] - 1) / strides[1]);
  return Dim::min(left, y[2]);
}

Dim Channelwise::endInside() const {
  int64_t reach = (window[1] - 1) * dilations[1] - low[1];
  Dim end = Dim::max((x[2] - Dim(reach + 1)).floorDiv(Dim(strides[1])) + Dim(1), Dim(0));
  return Dim::max(Dim::min(end, y[2]), firstInside());
}

/// Columns [begin, stop), all of them where the row is not in pieces.
void Channelwise::emitRow(Elements &e, const Row &row, Value begin, Value stop,
                          ArrayRef<Value> weights) {
  if (!isLine && emitKnownRow(e, row, weights))
    return;
  Code &code = kernel.code();
  auto within = [&](const Dim &column) {
    return code.min(code.max(kernel.dim(column), begin), stop);
  };
  Value first = within(firstInside()), end = within(endInside());
  auto emitSpan = [&](Value from, Value to, int64_t count, bool isInside) {
    code.forEach(from, to, count,
                 [&](Value column) { emitTile(e, row, {column, count, isInside}, weights); });
  };
  emitSpan(begin, first, 1, false);
  Value from = first;
  for (int64_t count = pixels(); count > 0; count /= 2) {
    Value size = code.number(count);
    Value to = code.add(from, code.mul(code.div(code.sub(end, from), size), size));
    emitSpan(from, to, count, true);
    from = to;
  }
  emitSpan(end, stop, 1, false);
}

bool Channelwise::emitKnownRow(Elements &e, const Row &row, ArrayRef<Value> weights) {
  auto width = y[2].constant(), first = firstInside().constant(), end = endInside().constant();
  if (!width || !first || !end || !x[2].constant() || *width == 0)
    return false;
  int64_t tiles = llvm::divideCeil(*width, pixels());
  int64_t size = llvm::divideCeil(*width, tiles);
  tiles = llvm::divideCeil(*width, size);
  int64_t inside = llvm::divideCeil(*first, size), outside = std::max(*end / size, inside);
  if (inside + tiles - outside > kMostAtBorder)
    return false;
  Code &code = kernel.code();
  auto emitKnown = [&](int64_t from, int64_t to) {
    for (int64_t column = from * size; column < std::min(to * size, *width); column += size)
      emitTile(e, row, {code.number(column), std::min(size, *width - column), false}, weights);
  };
  emitKnown(0, inside);
  code.forEach(code.number(inside * size), code.number(outside * size), size,
               [&](Value column) { emitTile(e, row, {column, size, true}, weights); });
  emitKnown(outside, tiles);
  return true;
}

void Channelwise::emitTile(Elements &e, const Row &row, const Tile &tile, ArrayRef<Value> weights) {
  Elements::Scope scope(e);
  store(e, row, tile, sumTile(e, row, tile, weights));
}

/// Sums of the whole window; where they are counted, the counts follow.
Values Channelwise::sumTile(Elements &e, const Row &row, const Tile &tile,
                            ArrayRef<Value> weights) {
  Code &code = kernel.code();
  Values sums(tile.count, code.spread(neutral(code, root, sumType)));
  if (areCounted())
    sums.append(tile.count, code.spread(code.constantOf(sumType, 0)));
  Value top = code.sub(code.mul(row.row, code.number(strides[0])), code.number(low[0]));
  Value height = kernel.dim(x[1]);
  bool isInside = low[0] == 0 && high[0] == 0 && !(pool && pool.getCeilMode());
  if (!isUnrolled()) {
    // Taps within [0, height): from ceil(-top / dilation) up to ceil((height - top) / dilation).
    Value zero = code.number(0), all = code.number(window[0]);
    Value from = isInside ? zero : code.max(code.ceilDiv(code.sub(zero, top), dilations[0]), zero);
    Value to = isInside ? all : code.min(code.ceilDiv(code.sub(height, top), dilations[0]), all);
    return code.fold(from, to, 1, sums, [&](Value tap, ValueRange carried) {
      Elements::Scope scope(e);
      Values ofRow;
      for (int64_t k = 0; conv && k < window[1]; ++k)
        ofRow.push_back(weight(e, row.channel,
                               code.add(code.mul(tap, code.number(window[1])), code.number(k))));
      Value source = code.add(top, code.mul(tap, code.number(dilations[0])));
      return sumRow(e, {row.image, source, row.channel}, tile, ofRow, carried);
    });
  }
  for (int64_t tap = 0; tap < window[0]; ++tap) {
    Value source = code.add(top, code.number(tap * dilations[0]));
    ArrayRef<Value> ofRow = conv ? weights.slice(tap * window[1], window[1]) : weights;
    sums = code.choose(
        isInside ? code.integerOf(code.b.getI1Type(), 1) : inside(e, e.uniform(source), height),
        ValueRange(sums).getTypes(),
        [&] { return sumRow(e, {row.image, source, row.channel}, tile, ofRow, sums); },
        [&] { return sums; });
  }
  return sums;
}

/// One row of the window; `weights` are those of this row, `source` is one of the image.
Values Channelwise::sumRow(Elements &e, const Row &source, const Tile &tile,
                           ArrayRef<Value> weights, ValueRange sums) {
  Code &code = kernel.code();
  Value input = root->getOperand(0), width = kernel.dim(x[2]);
  Value rowStart = code.add(code.mul(code.add(code.mul(source.image, kernel.dim(x[1])), source.row),
                                     kernel.dim(x[2] * x[3])),
                            source.channel);
  Values next(sums);
  std::map<int64_t, Value> loaded; // neighbouring pixels share taps
  for (int64_t p = 0; p < tile.count; ++p)
    for (int64_t k = 0; k < window[1]; ++k) {
      int64_t shift = p * strides[1] + k * dilations[1] - low[1];
      Value at = code.add(code.mul(tile.column, code.number(strides[1])), code.number(shift));
      Value isInside =
          tile.isInside ? code.integerOf(code.b.getI1Type(), 1) : inside(e, e.uniform(at), width);
      bool isKnown = Code::constant(isInside).has_value();
      auto load = [&] {
        Value index = code.add(rowStart, code.mul(at, kernel.dim(x[3])));
        return asFloats(e, code.loadLanes(element, kernel.pointer(input), index, e.mask));
      };
      Values old{next[p]};
      if (areCounted())
        old.push_back(next[tile.count + p]);
      Values result = code.choose(
          isInside, ValueRange(old).getTypes(),
          [&] {
            Value pixel = isKnown ? loaded[shift] : Value();
            if (!pixel)
              pixel = load();
            if (isKnown)
              loaded[shift] = pixel;
            return sumTap(e, pixel, conv ? weights[k] : Value(), old);
          },
          [&] { return old; });
      next[p] = result[0];
      if (areCounted())
        next[tile.count + p] = result[1];
    }
  return next;
}

Values Channelwise::sumTap(Elements &e, Value pixel, Value weight, ValueRange sums) {
  Code &code = e.code();
  if (weight)
    return {code.b.create<math::FmaOp>(code.loc, pixel, weight, sums[0])};
  Values result{combine(code, root, sums[0], pixel)};
  if (areCounted()) {
    Value one = code.spread(code.constantOf(sumType, 1));
    result.push_back(code.b.create<arith::AddFOp>(code.loc, sums[1], one));
  }
  return result;
}

void Channelwise::store(Elements &e, const Row &row, const Tile &tile, ValueRange sums) {
  Code &code = kernel.code();
  for (int64_t p = 0; p < tile.count; ++p) {
    Elements::Scope scope(e);
    Value sum = sums[p];
    if (isMean()) {
      Value all = code.spread(code.constantOf(sumType, taps()));
      Value count = all;
      if (areCounted()) // none, where dilation misses the image
        count = code.b.create<arith::MaxNumFOp>(code.loc, sums[tile.count + p],
                                                code.spread(code.constantOf(sumType, 1)));
      sum = code.b.create<arith::DivFOp>(code.loc, sum, count);
    }
    if (element != sumType)
      sum = code.b.create<arith::FPToSIOp>(code.loc, code.vectorOf(code.b.getI32Type()), sum);
    e.bind(root->getResult(0), [sum](ArrayRef<Index>) { return sum; });
    Indices place{e.uniform(row.image),
                  e.uniform(row.row),
                  e.uniform(code.add(tile.column, code.number(p))),
                  {row.channel, 1, {}}};
    if (isLine)
      place.erase(place.begin() + 1);
    for (Value output : outputsOf(group))
      e.store(output, e.at(output, place), place);
    e.unbind(root->getResult(0));
  }
}

Value Channelwise::asFloats(Elements &e, Value lanes) {
  if (element == sumType)
    return lanes;
  Code &code = kernel.code();
  Value wide = widen(e, lanes, code.b.getI32Type(), element.isUnsignedInteger());
  Type floats = Code::isVector(wide) ? Type(code.vectorOf(sumType)) : sumType;
  return code.b.create<arith::SIToFPOp>(code.loc, floats, wide);
}

} // namespace heddle::lower
