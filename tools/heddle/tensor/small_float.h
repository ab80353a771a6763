// SmallFloat: floats of at most 16 bits, to and from double.
#ifndef HEDDLE_TOOLS_HEDDLE_TENSOR_SMALL_FLOAT_H
#define HEDDLE_TOOLS_HEDDLE_TENSOR_SMALL_FLOAT_H

#include <cstdint>

namespace heddle::cli {

enum class Specials {
  Ieee,      // the highest exponent holds infinities and NaN
  OnlyNan,   // no infinities; all bits set is NaN ("fn")
  MinusZero, // no infinities; minus zero is NaN ("fnuz")
  None,      // every pattern is a number
};

struct SmallFloat {
  int exponentBits, mantissaBits, bias;
  Specials specials;
};

/// The format of a dtype of the C API; exponentBits is 0 if it is no small float.
SmallFloat smallFloatOf(int32_t dtype);

double decode(SmallFloat format, uint32_t bits);
/// Rounds to nearest, ties to even. Numbers too large become infinity, or NaN, or the largest
/// number, whichever the format has.
uint32_t encode(SmallFloat format, double value);

} // namespace heddle::cli

#endif
