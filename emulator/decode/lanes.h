// Lanes: functions of one lane's values as handlers of 32 lanes.
//
// A handler computes all lanes, which the compiler makes vector code of, and keeps those of the
// mask; so functions are total: none traps on any value.
#pragma once

#include "emulator/machine/block.h"
#include "emulator/machine/number.h"

#include <bit>
#include <cfenv>
#include <type_traits>

namespace heddle::emulator {

/// Keeps the lanes of the mask.
template <class T>
inline void put(const Warp &warp, const Operand &o, const T *values, uint32_t mask) {
  T *to = warp.at<T>(o);
  if (mask == kAllLanes)
    memcpy(to, values, sizeof(T) * kLanes);
  else
    for (unsigned lane = 0; lane < kLanes; ++lane)
      to[lane] = (mask >> lane & 1) ? values[lane] : to[lane];
}

inline void putMask(const Warp &warp, const Operand &o, uint32_t values, uint32_t mask) {
  uint32_t &to = warp.mask(o);
  to = (to & ~mask) | (values & mask);
}

/// Handler of R = Op(A...).
template <class Op, class R, class... A>
void each(Block &, Warp &warp, const Instruction &i, uint32_t mask) {
  alignas(64) R made[kLanes];
  const Operand *o = i.operands;
  auto loop = [&](const A *...from) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      made[lane] = Op::template apply<R>(from[lane]...);
  };
  [&]<size_t... k>(std::index_sequence<k...>) {
    loop(warp.at<A>(o[1 + k])...);
  }(std::index_sequence_for<A...>());
  put(warp, o[0], made, mask);
}

template <class Op, class T, unsigned N> constexpr Handler uniform() {
  if constexpr (N == 1)
    return each<Op, T, T>;
  else if constexpr (N == 2)
    return each<Op, T, T, T>;
  else
    return each<Op, T, T, T, T>;
}

/// Handler of an integer type's function of N values; null for other types.
template <class Op, unsigned N> Handler ofIntegers(Type type) {
  switch (type) {
  case Type::U16:
  case Type::B16:
    return uniform<Op, uint16_t, N>();
  case Type::U32:
  case Type::B32:
    return uniform<Op, uint32_t, N>();
  case Type::U64:
  case Type::B64:
    return uniform<Op, uint64_t, N>();
  case Type::S16:
    return uniform<Op, int16_t, N>();
  case Type::S32:
    return uniform<Op, int32_t, N>();
  case Type::S64:
    return uniform<Op, int64_t, N>();
  default:
    return nullptr;
  }
}

/// Host's direction of rounding while it lives.
class RoundingScope {
public:
  explicit RoundingScope(uint8_t mode) : before(fegetround()) {
    static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD,
                                    FE_TONEAREST};
    fesetround(modes[mode % 5]);
  }
  RoundingScope(const RoundingScope &) = delete;
  RoundingScope &operator=(const RoundingScope &) = delete;
  ~RoundingScope() { fesetround(before); }

private:
  int before;
};

template <class T> T flushed(T x) {
  if constexpr (std::is_same_v<T, float>)
    return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
  else if constexpr (std::is_same_v<T, Half>)
    return std::bit_cast<Half>(uint16_t((x.bits & 0x7c00) ? x.bits : (x.bits & 0x8000)));
  else if constexpr (std::is_same_v<T, Pair<Half>>)
    return {flushed(x.low), flushed(x.high)};
  else
    return x;
}

template <class T> T saturated(T x) {
  if constexpr (std::is_same_v<T, Pair<Half>> || std::is_same_v<T, Pair<Brain>>) {
    return {saturated(x.low), saturated(x.high)};
  } else if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    float v = float(x);
    return T(v > 0 ? (v < 1 ? v : 1) : 0.0f); // NaN becomes 0
  }
}

} // namespace heddle::emulator
