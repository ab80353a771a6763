// Microkernel: the nest of reduction loops that carries the accumulators in registers.

#include "compiler/loop/Microkernel.h"

using namespace mlir;

namespace heddle::loop {

static Value multiplyAdd(Code &code, Value x, Value y, Value sum) {
  if (isa<FloatType>(getElementTypeOrSelf(sum.getType())))
    return code.b.create<math::FmaOp>(code.loc, x, y, sum);
  Value product = code.b.create<arith::MulIOp>(code.loc, x, y);
  return code.b.create<arith::AddIOp>(code.loc, sum, product);
}

namespace {
struct Emitter {
  Code &code;
  const Tile &tile;
  const Product &product;
  int64_t width = tile.vectors * code.lanes;

  /// `aShift` and `bRow` say where the piece begins, in elements of A and in rows of the panel.
  Values nest(size_t depth, Value aShift, Value bRow, ValueRange sums) {
    if (depth == product.pieces.size())
      return run(aShift, bRow, sums);
    Value rowsInside = product.length;
    for (size_t i = depth + 1; i < product.pieces.size(); ++i)
      rowsInside = code.mul(rowsInside, product.pieces[i].count);
    const Piece &piece = product.pieces[depth];
    return code.fold(code.number(0), piece.count, 1, sums, [&](Value i, ValueRange in) {
      return nest(depth + 1, code.add(aShift, code.mul(i, piece.aStep)),
                  code.add(bRow, code.mul(i, rowsInside)), in);
    });
  }

  Values run(Value aShift, Value bRow, ValueRange sums) {
    Values rows;
    for (Value row : product.aRows)
      rows.push_back(code.at(product.a, product.element, code.add(row, aShift)));
    Value first = code.add(product.bOffset, code.mul(bRow, code.number(width)));
    Value panel = code.at(product.b, product.element, first);
    return code.fold(code.number(0), product.length, 1, sums,
                     [&](Value k, ValueRange in) { return step(rows, panel, k, in); });
  }

  Values step(ArrayRef<Value> rows, Value panel, Value k, ValueRange in) {
    Value place = code.mul(k, code.number(width));
    Values right;
    for (int64_t j = 0; j < tile.vectors; ++j) {
      Value at = code.add(place, code.number(j * code.lanes));
      right.push_back(code.loadLanes(product.element, panel, at, {}));
      if (product.prefetch)
        code.prefetch(panel, product.element, code.add(at, code.number(product.prefetch * width)));
    }
    Values next;
    for (int64_t i = 0; i < tile.rows; ++i) {
      Value left = code.spread(code.load(product.element, rows[i], k));
      for (int64_t j = 0; j < tile.vectors; ++j)
        next.push_back(multiplyAdd(code, left, right[j], in[i * tile.vectors + j]));
    }
    return next;
  }
};
} // namespace

SmallVector<Value> emitProduct(Code &code, const Tile &tile, const Product &product) {
  Value zero = code.spread(code.constantOf(product.accumulator, 0));
  SmallVector<Value> start(product.start);
  if (start.empty())
    start.assign(tile.rows * tile.vectors, zero);
  Values sums = Emitter{code, tile, product}.nest(0, code.number(0), code.number(0), start);
  return SmallVector<Value>(sums.begin(), sums.end());
}

std::vector<char> packPanels(ArrayRef<char> bytes, int64_t elementBytes, int64_t rows,
                             int64_t panels, int64_t width,
                             llvm::function_ref<int64_t(int64_t, int64_t)> source) {
  std::vector<char> packed(panels * rows * width * elementBytes, 0);
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t row = 0; row < rows; ++row) {
      char *target = packed.data() + (panel * rows + row) * width * elementBytes;
      for (int64_t column = 0; column < width; ++column)
        if (int64_t number = source(row, panel * width + column); number >= 0)
          std::memcpy(target + column * elementBytes, bytes.data() + number * elementBytes,
                      elementBytes);
    }
  return packed;
}

} // namespace heddle::loop
