// IntegerDecoding: panels of bf16 made of integers in blocks, which many rows share.

#include "compiler/lower/stored/IntegerPanels.h"

using namespace mlir;

namespace heddle::lower {

/// The codes of element `inStep` of a step, without the zero of all, as floats.
Value IntegerPanels::codeOf(Value words, int64_t inStep) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  Type word = b.getI32Type(), f32 = b.getF32Type();
  auto constant = [&](int64_t value) { return code.spread(code.integerOf(word, value)); };
  int64_t byte = inStep % 4, half = inStep / 4;
  if (isWide) // bytes of a pair are apart
    byte = byte == 1 ? 2 : byte == 2 ? 1 : byte;
  int64_t shift = byte * 8 + half * 4;
  Value codes;
  if (isSigned) {
    codes = b.create<arith::ShLIOp>(code.loc, words, constant(24 - shift));
    codes = b.create<arith::ShRSIOp>(code.loc, codes, constant(24));
  } else {
    codes = shift == 0 ? words : b.create<arith::ShRUIOp>(code.loc, words, constant(shift));
    codes = b.create<arith::AndIOp>(code.loc, codes, constant((1 << bits) - 1));
  }
  if (zero != 0)
    codes = b.create<arith::SubIOp>(code.loc, codes, constant(zero));
  return b.create<arith::SIToFPOp>(code.loc, code.vectorOf(f32), codes);
}

void IntegerPanels::decode(Value panel, Value target, int64_t vector, int64_t width) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  Type byte = b.getI8Type(), word = b.getI32Type(), f32 = b.getF32Type();
  int64_t blocks = length / block;
  Value from =
      code.at(kernel.data(data), byte, code.mul(panel, code.number(blocks * blockBytes())));
  code.forEach(code.number(0), code.number(blocks), 1, [&](Value number) {
    Value source = code.at(from, byte, code.mul(number, code.number(blockBytes())));
    Value parameters = code.at(source, byte, code.number(codeBytes()));
    Value scale = code.loadLanes(f32, parameters, code.number(0), {}), ownZero;
    if (areZerosOwn)
      ownZero = code.loadLanes(f32, parameters, code.number(lanes()), {});
    auto floatOf = [&](Value words, int64_t inStep) -> Value {
      Value value = codeOf(words, inStep);
      if (ownZero)
        value = b.create<arith::SubFOp>(code.loc, value, ownZero);
      return b.create<arith::MulFOp>(code.loc, value, scale);
    };
    code.forEach(code.number(0), code.number(block / step()), 1, [&](Value i) {
      Value address = code.at(source, word, code.mul(i, code.number(lanes())));
      Value words =
          b.create<program::LoadOp>(code.loc, code.vectorOf(word), address, /*alignment=*/1);
      Value first =
          code.add(code.mul(number, code.number(block / 2)), code.mul(i, code.number(step() / 2)));
      for (int64_t pair = 0; pair < step() / 2; ++pair) {
        Value pairs = shortPairs(code, floatOf(words, 2 * pair), floatOf(words, 2 * pair + 1));
        Value row = code.add(first, code.number(pair));
        code.storeLanes(word, pairs, target,
                        code.add(code.mul(row, code.number(width)), code.number(vector * lanes())),
                        {});
      }
    });
  });
}

} // namespace heddle::lower
