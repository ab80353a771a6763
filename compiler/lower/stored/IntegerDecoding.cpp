// IntegerDecoding: panels of bf16 made of integers in blocks, which many rows share.

#include "compiler/lower/stored/IntegerPanels.h"

using namespace mlir;

namespace heddle::lower {

/// The codes of element `inStep` of a step as floats.
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
  return b.create<arith::SIToFPOp>(code.loc, code.vectorOf(f32), codes);
}

/// Two numbers as bf16 in a word. Half of the last place is added to the bits of those that are not
/// NaN, which takes fewer instructions than the conversions.
Value IntegerPanels::pairsOf(Value even, Value odd) {
  constexpr int64_t kHalf = 0x8000, kHigh = 0xffff0000;
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  if (!areFinite)
    return shortPairs(code, even, odd);
  auto constant = [&](int64_t value) {
    return code.spread(code.integerOf(b.getI32Type(), static_cast<int32_t>(value)));
  };
  auto rounded = [&](Value value) -> Value {
    Value bits = b.create<arith::BitcastOp>(code.loc, code.vectorOf(b.getI32Type()), value);
    return b.create<arith::AddIOp>(code.loc, bits, constant(kHalf));
  };
  Value low = b.create<arith::ShRUIOp>(code.loc, rounded(even), constant(16));
  Value high = b.create<arith::AndIOp>(code.loc, rounded(odd), constant(kHigh));
  return b.create<arith::OrIOp>(code.loc, low, high);
}

void IntegerPanels::decode(Value panel, Value target, int64_t vector, int64_t width) {
  constexpr int64_t kSteps = 4; // written one after the other
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  Type byte = b.getI8Type(), word = b.getI32Type(), f32 = b.getF32Type();
  int64_t blocks = length / block, unrolled = std::gcd(kSteps, block / step());
  Value from = codesOf(panel);
  code.forEach(code.number(0), code.number(blocks), 1, [&](Value number) {
    Value source = code.at(from, byte, code.mul(number, code.number(blockBytes())));
    Value parameters = code.at(source, byte, code.number(codeBytes()));
    Value scale = code.loadLanes(f32, parameters, code.number(0), {});
    Value zeros = code.spread(code.constantOf(f32, static_cast<double>(zero)));
    if (areZerosOwn)
      zeros = code.loadLanes(f32, parameters, code.number(lanes()), {});
    bool isOneStep = isZeroExact && !areZerosOwn;
    Value less; // what all codes times the scale are less
    if (isOneStep)
      less = b.create<arith::NegFOp>(code.loc,
                                     b.create<arith::MulFOp>(code.loc, scale, zeros).getResult());
    auto floatOf = [&](Value words, int64_t inStep) -> Value {
      Value value = codeOf(words, inStep);
      if (isOneStep)
        return b.create<math::FmaOp>(code.loc, value, scale, less);
      value = b.create<arith::SubFOp>(code.loc, value, zeros);
      return b.create<arith::MulFOp>(code.loc, value, scale);
    };
    auto decodeStep = [&](Value i) {
      Value address = code.at(source, word, code.mul(i, code.number(lanes())));
      Value words =
          b.create<program::LoadOp>(code.loc, code.vectorOf(word), address, /*alignment=*/1);
      Value first =
          code.add(code.mul(number, code.number(block / 2)), code.mul(i, code.number(step() / 2)));
      for (int64_t pair = 0; pair < step() / 2; ++pair) {
        Value pairs = pairsOf(floatOf(words, 2 * pair), floatOf(words, 2 * pair + 1));
        Value row = code.add(first, code.number(pair));
        Value place = code.add(code.mul(row, code.number(width)), code.number(vector * lanes()));
        code.storeLanes(word, pairs, target, place, {});
      }
    };
    code.forEach(code.number(0), code.number(block / step()), unrolled, [&](Value i) {
      for (int64_t j = 0; j < unrolled; ++j)
        decodeStep(code.add(i, code.number(j)));
    });
  });
}

} // namespace heddle::lower
