// Microkernel: the nest of reduction loops that carries the accumulators in registers.

#include "compiler/lower/contraction/Microkernel.h"

#include "compiler/lower/elements/Definitions.h"

#include "mlir/IR/Threading.h"

using namespace mlir;

namespace heddle::lower {

static Value multiplyAdd(Code &code, Value x, Value y, Value sum) {
  if (isa<FloatType>(getElementTypeOrSelf(sum.getType())))
    return code.b.create<math::FmaOp>(code.loc, x, y, sum);
  Value product = code.b.create<arith::MulIOp>(code.loc, x, y);
  return code.b.create<arith::AddIOp>(code.loc, sum, product);
}

static Type likeIn(Code &code, Value value, Type element) {
  return Code::isVector(value) ? Type(code.vectorOf(element)) : element;
}

Value shortBits(Code &code, Value floats) {
  return code.b.create<arith::BitcastOp>(code.loc, likeIn(code, floats, code.b.getI16Type()),
                                         roundedFactor(code, floats));
}

Value shortWords(Code &code, Value floats) {
  Value bits = shortBits(code, floats);
  return code.b.create<arith::ExtUIOp>(code.loc, likeIn(code, bits, code.b.getI32Type()), bits);
}

Value shortPairs(Code &code, Value even, Value odd) {
  Value high = code.b.create<arith::ShLIOp>(code.loc, shortWords(code, odd),
                                            code.spread(code.integerOf(code.b.getI32Type(), 16)));
  return code.b.create<arith::OrIOp>(code.loc, shortWords(code, even), high);
}

/// Elements of A and of B in lanes of 32 bits.
static program::DotKind dotKindOf(const TileProduct &product) {
  if (isa<FloatType>(product.accumulator))
    return program::DotKind::ShortFloats;
  if (product.depth == 2)
    return program::DotKind::Pairs;
  return product.dot == program::Dot::Bytes ? program::DotKind::UnsignedBytes
                                            : program::DotKind::Bytes;
}

namespace {
struct Emitter {
  Code &code;
  const RegisterTile &tile;
  const TileProduct &product;
  int64_t width = std::max(tile.vectors, product.panelVectors) * code.lanes;

  /// `aShift` and `bRow` say where the piece begins, in elements of A and in rows of the panel.
  Values nest(size_t depth, Value aShift, Value bRow, ValueRange sums) {
    if (depth == product.pieces.size())
      return run(aShift, bRow, sums);
    Value rowsInside = product.length;
    if (product.depth > 1)
      rowsInside = code.mul(code.ceilDiv(rowsInside, product.depth), code.number(product.depth));
    for (size_t i = depth + 1; i < product.pieces.size(); ++i)
      rowsInside = code.mul(rowsInside, product.pieces[i].count);
    const ReductionPiece &piece = product.pieces[depth];
    Value first = piece.first ? piece.first : code.number(0);
    Value end = piece.end ? piece.end : piece.count;
    return code.fold(first, end, 1, sums, [&](Value i, ValueRange in) {
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
    int64_t depth = product.depth;
    Value whole = product.length;
    if (depth > 1 && !product.isPadded)
      whole = code.sub(whole, code.rem(whole, code.number(depth)));
    Values next = code.fold(code.number(0), whole, depth, sums, [&](Value k, ValueRange in) {
      return depth > 1 ? dotStep(rows, panel, k, in, /*isLast=*/false) : step(rows, panel, k, in);
    });
    if (depth == 1 || product.isPadded)
      return next;
    return code.fold(whole, product.length, depth, next, [&](Value k, ValueRange in) {
      return dotStep(rows, panel, k, in, /*isLast=*/true);
    });
  }

  Value loadWord(Value pointer, Value index, Type type) {
    Value address = code.at(pointer, product.element, index);
    return code.b.create<program::LoadOp>(code.loc, type, address, 4 / product.depth);
  }

  /// Elements [k, length) of a row, less than `depth` of them. Those after them meet zeros.
  Value loadRest(Value row, Value k) {
    Value last = code.sub(product.length, code.number(1)), word;
    auto count = Code::constant(code.sub(product.length, k));
    for (int64_t i = 0; i < count.value_or(product.depth - 1); ++i) {
      Value index = code.min(code.add(k, code.number(i)), last);
      Value part = code.b.create<arith::ExtUIOp>(code.loc, code.b.getI32Type(),
                                                 code.load(product.element, row, index));
      Value shift = code.integerOf(code.b.getI32Type(), i * 32 / product.depth);
      part = code.b.createOrFold<arith::ShLIOp>(code.loc, part, shift);
      word = word ? code.b.createOrFold<arith::OrIOp>(code.loc, word, part) : part;
    }
    return word;
  }

  Values dotStep(ArrayRef<Value> rows, Value panel, Value k, ValueRange in, bool isLast) {
    Value place = code.mul(k, code.number(width));
    Type word = code.b.getI32Type();
    Values right, next;
    for (int64_t j = 0; j < tile.vectors; ++j) {
      Value at = code.add(place, code.number(j * code.lanes * product.depth));
      right.push_back(loadWord(panel, at, code.vectorOf(word)));
      if (isLast && product.endsInside) // 0 times infinity is none
        right.back() = code.b.create<arith::AndIOp>(code.loc, right.back(),
                                                    code.spread(code.integerOf(word, 0xffff)));
      int64_t ahead = product.prefetch * width * product.depth;
      if (ahead && !isLast)
        code.prefetch(panel, product.element, code.add(at, code.number(ahead)));
    }
    for (int64_t i = 0; i < tile.rows; ++i) {
      // Words of tiles are whole: after the last step they have zeros.
      bool isWhole = !isLast || product.aStep != 1;
      Value left = isWhole ? loadWord(rows[i], code.mul(k, code.number(product.aStep)), word)
                           : loadRest(rows[i], k);
      left = code.spread(left);
      for (int64_t j = 0; j < tile.vectors; ++j)
        next.push_back(code.b.create<program::DotOp>(code.loc, dotKindOf(product), left, right[j],
                                                     in[i * tile.vectors + j]));
    }
    return next;
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
    if (product.fetchedStep)
      code.prefetch(product.fetched, product.element, code.mul(k, product.fetchedStep));
    Values next;
    for (int64_t i = 0; i < tile.rows; ++i) {
      Value left = code.load(product.element, rows[i], code.mul(k, code.number(product.aStep)));
      if (product.counts)
        left = code.b.create<arith::SelectOp>(code.loc, product.counts(i, k), left,
                                              code.constantOf(product.element, 0));
      left = code.spread(left);
      for (int64_t j = 0; j < tile.vectors; ++j)
        next.push_back(multiplyAdd(code, left, right[j], in[i * tile.vectors + j]));
    }
    return next;
  }
};
} // namespace

SmallVector<Value> emitProduct(Code &code, const RegisterTile &tile, const TileProduct &product) {
  Value zero = code.spread(code.constantOf(product.accumulator, 0));
  SmallVector<Value> start(product.start);
  if (start.empty())
    start.assign(tile.rows * tile.vectors, zero);
  Values sums = Emitter{code, tile, product}.nest(0, code.number(0), code.number(0), start);
  return SmallVector<Value>(sums.begin(), sums.end());
}

template <typename T>
static void packPanel(const PanelSource &source, int64_t panel, int64_t width, char *memory) {
  const char *elements = source.bytes.data(); // of any alignment
  int64_t rows = source.rows.size();
  const int64_t *columns = source.columns.data() + panel * width;
  T *target = reinterpret_cast<T *>(memory) + panel * rows * width;
  for (int64_t row = 0; row < rows; ++row, target += width) {
    const char *start = elements + source.rows[row] * sizeof(T);
    for (int64_t i = 0; i < width; ++i)
      if (columns[i] >= 0)
        std::memcpy(target + i, start + columns[i] * sizeof(T), sizeof(T));
  }
}

void packConstantPanels(MLIRContext *context, const PanelSource &source, int64_t width,
                        char *target) {
  auto pack = source.elementBytes == 1   ? packPanel<uint8_t>
              : source.elementBytes == 2 ? packPanel<uint16_t>
              : source.elementBytes == 4 ? packPanel<uint32_t>
                                         : packPanel<uint64_t>;
  parallelFor(context, 0, source.columns.size() / width,
              [&](size_t panel) { pack(source, panel, width, target); });
}

std::vector<char> packConstantDots(MLIRContext *context, int64_t depth, int64_t rows,
                                   int64_t panels, int64_t width,
                                   llvm::function_ref<int64_t(int64_t, int64_t)> number) {
  int64_t bytes = 4 / depth;
  std::vector<char> packed(panels * rows * width * bytes, 0);
  parallelFor(context, 0, panels, [&](size_t panel) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < width; ++column) {
        int64_t group = (int64_t(panel) * rows + row / depth * depth) * width;
        int64_t place = group + column * depth + row % depth;
        int64_t value = number(row, int64_t(panel) * width + column); // the low bytes come first
        std::memcpy(packed.data() + place * bytes, &value, bytes);
      }
  });
  return packed;
}

} // namespace heddle::lower
