// Numbers: the formats of GPUs that C++ lacks, and rounding to any format in any direction.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace heddle::emulator {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, Away };

/// `x` as an integer of its own format.
inline long double roundedInteger(long double x, Rounding mode) {
  switch (mode) {
  case Rounding::Zero:
    return truncl(x);
  case Rounding::Down:
    return floorl(x);
  case Rounding::Up:
    return ceill(x);
  case Rounding::Away:
    return roundl(x);
  default:
    return rintl(x);
  }
}

/// `x` in a binary format of `digits` bits whose smallest normal number is 2^least and whose
/// numbers are less than 2^most.
inline long double rounded(long double x, int digits, int least, int most, Rounding mode) {
  if (x == 0 || !std::isfinite(x))
    return x;
  int exponent;
  frexpl(x, &exponent);
  int unit = std::max(exponent - 1, least) - digits + 1;
  long double y = ldexpl(roundedInteger(ldexpl(x, -unit), mode), unit);
  if (fabsl(y) < ldexpl(1, most))
    return copysignl(y, x);
  bool isKept = mode == Rounding::Zero || (mode == Rounding::Down && x > 0) ||
                (mode == Rounding::Up && x < 0);
  long double largest = ldexpl(2 - ldexpl(1, 1 - digits), most - 1);
  return copysignl(isKept ? largest : std::numeric_limits<long double>::infinity(), x);
}

struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float x) : bits(std::bit_cast<uint16_t>(static_cast<_Float16>(x))) {}
  explicit operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
  static constexpr int digits = 11, least = -14, most = 16;
  static constexpr uint16_t nan = 0x7fff;
};

struct Brain {
  uint16_t bits;
  Brain() = default;
  explicit Brain(float x) {
    uint32_t u = std::bit_cast<uint32_t>(x);
    uint32_t nearest = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    bits = static_cast<uint16_t>((u & 0x7fffffff) > 0x7f800000 ? 0x7fff : nearest);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
  static constexpr int digits = 8, least = -126, most = 128;
  static constexpr uint16_t nan = 0x7fff;
};

template <class T> struct Pair {
  T low, high;
};

/// a * b + c for formats of up to 16 bits, rounded once: in double, the sum is rounded to odd.
template <class T> T fusedNarrow(T x, T y, T z) {
  double product = double(float(x)) * double(float(y)), c = float(z), sum = product + c;
  if (std::isfinite(sum)) {
    double part = sum - product, lost = (product - (sum - part)) + (c - part);
    auto bits = std::bit_cast<uint64_t>(sum);
    if (lost != 0 && !(bits & 1))
      sum = std::bit_cast<double>(bits + ((lost > 0) == (sum > 0) ? 1 : -1));
  }
  T made;
  if (std::isnan(sum))
    made.bits = T::nan;
  else
    made = T(static_cast<float>(rounded(sum, T::digits, T::least, T::most, Rounding::Nearest)));
  return made;
}

} // namespace heddle::emulator
