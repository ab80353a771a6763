// IntegerMatrices: the same products in registers that hold matrices.
//
// A step of these registers has as many words of a block as fit them. The sums of a block come to
// memory, where they are scaled as those of vectors are.

#include "compiler/lower/stored/IntegerPanels.h"

using namespace mlir;

namespace heddle::lower {

static constexpr int64_t kRows = program::kMatrixSize;

int64_t IntegerPanels::wordsOfStep() const {
  int64_t words = std::min(kRows, block / 4);
  while (block / 4 % words != 0)
    --words;
  return words;
}

bool IntegerPanels::fitsMatrices() const {
  // Codes less their zero are bytes with a sign.
  bool areBytes = bits == 4 ? zero >= 0 && zero <= INT8_MAX : zero == (isSigned ? 0 : 128);
  return kernel.machine.hasMatrices && lanes() == program::kMatrixSize && !areZerosOwn &&
         areBytes && program::MultiplyMatricesOp::fits(kRows, width());
}

int64_t IntegerPanels::unpackedBytes() const { return length * width(); }

Value IntegerPanels::scratch() {
  Code &code = kernel.code();
  return code.at(kernel.scratch(), code.b.getI8Type(), kernel.dim(scratchBegin));
}

Value IntegerPanels::unpackedAt(Value place) {
  Code &code = kernel.code();
  Value at = code.add(code.number(sumBytes()), code.mul(place, code.number(unpackedBytes())));
  return code.at(scratch(), code.b.getI8Type(), at);
}

/// Bytes of codes, less the zero of all.
Value IntegerPanels::signedCodes(Value codes) {
  constexpr int64_t kEach = 0x01010101, kSigns = 0x80808080;
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  auto constant = [&](int64_t value) {
    return code.spread(code.integerOf(b.getI32Type(), static_cast<int32_t>(value)));
  };
  if (zero == 0)
    return codes;
  if (bits == 4) { // with the highest bit set, no byte borrows of the next
    codes = b.create<arith::OrIOp>(code.loc, codes, constant(kSigns));
    codes = b.create<arith::SubIOp>(code.loc, codes, constant(zero * kEach));
  }
  return b.create<arith::XOrIOp>(code.loc, codes, constant(kSigns));
}

void IntegerPanels::unpack(Value panel, Value place) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  Type byte = b.getI8Type(), word = b.getI32Type();
  int64_t blocks = length / block;
  Value from = codesOf(panel);
  Value to = unpackedAt(place), mask = code.spread(code.integerOf(word, 0x0f0f0f0f)),
        shift = code.spread(code.integerOf(word, 4));
  code.forEach(code.number(0), code.number(blocks), 1, [&](Value number) {
    Value source = code.at(from, byte, code.mul(number, code.number(blockBytes())));
    Value target = code.at(to, byte, code.mul(number, code.number(block * width())));
    code.forEach(code.number(0), code.number(block / step()), 1, [&](Value i) {
      for (int64_t j = 0; j < vectors; ++j) {
        Value at = code.add(code.mul(i, code.number(width())), code.number(j * lanes()));
        Value address = code.at(source, word, at);
        Value codes =
            b.create<program::LoadOp>(code.loc, code.vectorOf(word), address, /*alignment=*/1);
        for (int64_t part = 0; part < 8 / bits; ++part) {
          Value row = code.add(code.mul(i, code.number(8 / bits)), code.number(part));
          Value low = bits == 8 ? codes : b.create<arith::AndIOp>(code.loc, codes, mask);
          code.storeLanes(word, signedCodes(low), target,
                          code.add(code.mul(row, code.number(width())), code.number(j * lanes())),
                          {});
          codes = b.create<arith::ShRUIOp>(code.loc, codes, shift);
        }
      }
    });
  });
}

/// Blocks whose sums are in memory at a time: some come to be while one, stored long enough ago to
/// be read without waiting, is scaled.
static constexpr int64_t kAtOnce = 4, kAhead = 2;

int64_t IntegerPanels::sumBytes() const { return kAtOnce * kRows * width() * 4; }

Value IntegerPanels::sumsAt(Value number) {
  Code &code = kernel.code();
  Value place = code.rem(number, code.number(kAtOnce));
  Value at = code.mul(place, code.number(sumBytes() / kAtOnce));
  return code.at(scratch(), code.b.getI8Type(), at);
}

SmallVector<Value> IntegerPanels::matrixSums(const RegisterTile &tile, const TileProduct &product,
                                             Value panel, Value place) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  Type f32 = b.getF32Type(), byte = b.getI8Type(), word = b.getI32Type();
  int64_t count = tile.rows * tile.vectors, blocks = length / block;
  Value first = product.aRows.front();
  Values numbers; // of the tile's rows, the last of which may be the same
  for (Value row : product.aRows)
    numbers.push_back(code.div(code.sub(row, first), code.number(length)));
  Value steps = code.at(kernel.temporary(this->steps), f32, code.div(first, code.number(block)));
  Value left = code.at(kernel.temporary(rows), byte, first), right = unpackedAt(place);
  Value from = codesOf(panel);
  auto multiply = [&](Value number) {
    Value first = code.mul(number, code.number(block));
    Value matrix = code.at(right, byte, code.mul(first, code.number(width())));
    b.create<program::MultiplyMatricesOp>(
        code.loc, program::DotKind::Bytes, sumsAt(number), code.at(left, byte, first),
        code.number(0), code.number(length), 4 * wordsOfStep(), matrix, code.number(1),
        code.number(block / 4 / wordsOfStep()), matrix, /*fetched_lines=*/0, kRows, width(),
        wordsOfStep());
  };
  auto scaled = [&](Value number, ValueRange in) {
    Values next(in.begin(), in.end());
    Value sums = sumsAt(number);
    Value parameters =
        code.at(from, byte,
                code.add(code.mul(number, code.number(blockBytes())), code.number(codeBytes())));
    for (int64_t j = 0; j < tile.vectors; ++j) {
      Value scale = code.loadLanes(f32, parameters, code.number(j * lanes()), {});
      for (int64_t row = 0; row < tile.rows; ++row) {
        Value &sum = next[row * tile.vectors + j];
        Value at = code.add(code.mul(numbers[row], code.number(width())), code.number(j * lanes()));
        Value step = code.at(steps, f32, code.mul(numbers[row], code.number(blocks)));
        sum = addScaled(code.loadLanes(word, sums, at, {}), scale, step, number, sum);
      }
    }
    return next;
  };
  int64_t ahead = std::min(kAhead, blocks);
  for (int64_t i = 0; i < ahead; ++i)
    multiply(code.number(i));
  Values none(count, code.spread(code.constantOf(f32, 0)));
  Value whole = code.number(blocks - ahead);
  Values made = code.fold(code.number(0), whole, 1, none, [&](Value i, ValueRange in) {
    multiply(code.add(i, code.number(ahead)));
    return scaled(i, in);
  });
  made = code.fold(whole, code.number(blocks), 1, made, scaled);
  return SmallVector<Value>(made.begin(), made.end());
}

} // namespace heddle::lower
