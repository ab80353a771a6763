// SmallFloat: see small_float.h.

#include "tools/heddle/tensor/small_float.h"

#include "heddle/runtime.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle::cli {

SmallFloat smallFloatOf(int32_t dtype) {
  switch (dtype) {
  case HEDDLE_FLOAT16:
    return {5, 10, 15, Specials::Ieee};
  case HEDDLE_BFLOAT16:
    return {8, 7, 127, Specials::Ieee};
  case HEDDLE_FLOAT8E4M3FN:
    return {4, 3, 7, Specials::OnlyNan};
  case HEDDLE_FLOAT8E4M3FNUZ:
    return {4, 3, 8, Specials::MinusZero};
  case HEDDLE_FLOAT8E5M2:
    return {5, 2, 15, Specials::Ieee};
  case HEDDLE_FLOAT8E5M2FNUZ:
    return {5, 2, 16, Specials::MinusZero};
  case HEDDLE_FLOAT4E2M1:
    return {2, 1, 1, Specials::None};
  default:
    return {};
  }
}

double decode(SmallFloat format, uint32_t bits) {
  int width = format.exponentBits + format.mantissaBits;
  bool isNegative = bits >> width & 1;
  uint32_t magnitude = bits & ((1u << width) - 1);
  uint32_t exponent = magnitude >> format.mantissaBits;
  uint32_t mantissa = magnitude & ((1u << format.mantissaBits) - 1);
  uint32_t highest = (1u << format.exponentBits) - 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  if (format.specials == Specials::Ieee && exponent == highest)
    value = mantissa ? nan : std::numeric_limits<double>::infinity();
  else if (format.specials == Specials::OnlyNan && magnitude == (1u << width) - 1)
    value = nan;
  else if (format.specials == Specials::MinusZero && isNegative && magnitude == 0)
    return nan;
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - format.bias - format.mantissaBits);
  else
    value = std::ldexp(mantissa + (1u << format.mantissaBits),
                       static_cast<int>(exponent) - format.bias - format.mantissaBits);
  return isNegative ? -value : value;
}

/// The bits of a number too large for the format, or of NaN.
static uint32_t overflow(SmallFloat format, bool isNan) {
  uint32_t all = (1u << (format.exponentBits + format.mantissaBits)) - 1;
  uint32_t infinity = all & ~((1u << format.mantissaBits) - 1);
  switch (format.specials) {
  case Specials::Ieee:
    return isNan ? infinity | 1u << (format.mantissaBits - 1) : infinity;
  case Specials::MinusZero:
    return all + 1;
  case Specials::OnlyNan:
  case Specials::None:
    return all;
  }
  return all;
}

uint32_t encode(SmallFloat format, double value) {
  int width = format.exponentBits + format.mantissaBits;
  uint32_t sign = std::signbit(value) ? 1u << width : 0;
  if (std::isnan(value))
    return overflow(format, true);
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | overflow(format, false);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  int unit = std::max(exponent - 1, 1 - format.bias) - format.mantissaBits; // log2 of the last bit
  double scaled = std::nearbyint(std::ldexp(magnitude, -unit));
  // Adding the mantissa with its hidden bit carries into the exponent when rounding overflows it.
  auto field = static_cast<int64_t>(scaled);
  int64_t bits = field + (static_cast<int64_t>(unit + format.mantissaBits + format.bias - 1)
                          << format.mantissaBits);
  if (field == 0)
    bits = 0;
  int64_t limit = overflow(format, false);
  if (bits > limit || (bits == limit && format.specials != Specials::None))
    return sign | static_cast<uint32_t>(limit);
  bool hasMinusZero = format.specials != Specials::MinusZero;
  return bits == 0 && !hasMinusZero ? 0 : sign | static_cast<uint32_t>(bits);
}

} // namespace heddle::cli
