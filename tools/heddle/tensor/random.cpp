// Random: the same numbers on every machine, from a counter through a hash (splitmix64).

#include "tools/heddle/tensor/feeds.h"

#include <algorithm>
#include <cmath>

namespace heddle::cli {

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014.
static uint64_t next(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static Range rangeOf(int32_t dtype) {
  int bits = heddle_dtype_bits(dtype);
  if (dtype == HEDDLE_BOOL || bits > 8)
    return {true, 0, 1};
  double size = std::ldexp(1, bits);
  return isSigned(dtype) ? Range{true, -size / 2, size / 2 - 1} : Range{true, 0, size - 1};
}

void fillRandom(Tensor &tensor, uint64_t seed, Range range) {
  uint64_t state = seed;
  int64_t count = tensor.count() * (isComplex(tensor.dtype) ? 2 : 1);
  bool isReal = isFloating(tensor.dtype) || isComplex(tensor.dtype);
  if (!range.isGiven)
    range = isReal ? Range{true, -1, 1} : rangeOf(tensor.dtype);
  for (int64_t i = 0; i < count; ++i) {
    double unit = std::ldexp(static_cast<double>(next(state) >> 11), -53); // [0, 1)
    if (isReal)
      setElement(tensor, i, range.low + unit * (range.high - range.low));
    else
      setInteger(tensor, i,
                 static_cast<int64_t>(std::min(
                     range.high, std::floor(range.low + unit * (range.high - range.low + 1)))));
  }
}

} // namespace heddle::cli
