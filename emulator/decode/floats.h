// Floats: functions of floating-point values, for all formats, roundings and modifiers.
//
// Results with .rn are those of IEEE 754; f16 and bf16 are computed in float, whose digits suffice
// for one right rounding, and fused products by fusedNarrow.
#pragma once

#include "emulator/decode/decoder.h"
#include "emulator/decode/lanes.h"

namespace heddle::emulator {

struct FloatAdd {
  template <class T> static T apply(T a, T b) { return a + b; }
};
struct FloatSub {
  template <class T> static T apply(T a, T b) { return a - b; }
};
struct FloatMul {
  template <class T> static T apply(T a, T b) { return a * b; }
};
struct FloatDiv {
  template <class T> static T apply(T a, T b) { return a / b; }
};
struct Fma {
  template <class T> static T apply(T a, T b, T c) { return std::fma(a, b, c); }
};
struct FloatMin {
  template <class T> static T apply(T a, T b) {
    T least = a < b || (a == b && std::signbit(a)) ? a : b;
    return a != a ? b : b != b ? a : least;
  }
};
struct FloatMax {
  template <class T> static T apply(T a, T b) {
    T most = a > b || (a == b && !std::signbit(a)) ? a : b;
    return a != a ? b : b != b ? a : most;
  }
};
struct FloatNeg {
  template <class T> static T apply(T a) { return -a; }
};
struct FloatAbs {
  template <class T> static T apply(T a) { return std::fabs(a); }
};

/// The one NaN that devices make.
template <class T> T canonical(T x) {
  if constexpr (std::is_same_v<T, float>)
    return x != x ? std::bit_cast<float>(0x7fffffffu) : x;
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
    return float(x) != float(x) ? std::bit_cast<T>(uint16_t(0x7fff)) : x;
  else
    return x;
}

/// Op on any format, without modifiers.
template <class Op, class T, class... Rest> T calculate(T a, Rest... rest) {
  if constexpr (std::is_same_v<T, Pair<Half>> || std::is_same_v<T, Pair<Brain>>) {
    return {calculate<Op>(a.low, rest.low...), calculate<Op>(a.high, rest.high...)};
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>) {
    constexpr uint16_t sign = 0x8000;
    if constexpr (std::is_same_v<Op, FloatNeg>)
      return std::bit_cast<T>(uint16_t(a.bits ^ sign));
    else if constexpr (std::is_same_v<Op, FloatAbs>)
      return std::bit_cast<T>(uint16_t(a.bits & ~sign));
    else if constexpr (std::is_same_v<Op, Fma>)
      return canonical(fusedNarrow(a, rest...));
    else
      return canonical(T(Op::template apply<float>(float(a), float(rest)...)));
  } else if constexpr (std::is_same_v<Op, FloatNeg> || std::is_same_v<Op, FloatAbs>) {
    return Op::template apply<T>(a);
  } else {
    return canonical(Op::template apply<T>(a, rest...));
  }
}

template <class Op> struct Plain {
  template <class T, class... Rest> static T apply(T a, Rest... rest) {
    return calculate<Op, T>(a, rest...);
  }
};

template <class T> bool isNaN(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
    return float(x) != float(x);
  else if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}

enum FloatOption : uint8_t { NaNWins = 1, Relu = 2 };

/// max(x, 0), with NaN kept as the canonical one.
template <class T> T positive(T x) {
  if constexpr (std::is_same_v<T, Pair<Half>> || std::is_same_v<T, Pair<Brain>>)
    return {positive(x.low), positive(x.high)};
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
    return isNaN(x) ? canonical(x) : float(x) > 0 ? x : T(0.0f);
  else
    return x > 0 || x != x ? x : T(0);
}

template <class T> T winningNaN(T made, T a, T b) {
  if constexpr (std::is_same_v<T, Pair<Half>> || std::is_same_v<T, Pair<Brain>>)
    return {winningNaN(made.low, a.low, b.low), winningNaN(made.high, a.high, b.high)};
  else
    return isNaN(a) ? canonical(a) : isNaN(b) ? canonical(b) : made;
}

template <class T> T laundered(T x) { // keeps the compiler from moving it over a change of mode
  if constexpr (std::is_floating_point_v<T>) {
    volatile T kept = x;
    return kept;
  }
  return x;
}

/// Op with .ftz, .sat, .relu, .NaN and directions of rounding as the instruction says.
template <class Op, class T, class... Rest>
void modified(Block &, Warp &warp, const Instruction &i, uint32_t mask) {
  T made[kLanes];
  const Operand *o = i.operands;
  auto loop = [&](const T *a, const Rest *...rest) {
    RoundingScope scope(i.rounding);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      auto in = [&](T x) { return laundered(i.isFlushing ? flushed(x) : x); };
      T x = laundered(calculate<Op, T>(in(a[lane]), in(rest[lane])...));
      if constexpr (sizeof...(Rest) == 1)
        if (i.option & NaNWins)
          x = (winningNaN(x, a[lane], rest[lane]), ...);
      x = i.option & Relu ? positive(x) : x;
      x = i.isFlushing ? flushed(x) : x;
      made[lane] = i.isSaturating ? saturated(x) : x;
    }
  };
  [&]<size_t... k>(std::index_sequence<k...>) {
    loop(warp.at<T>(o[1]), warp.at<Rest>(o[2 + k])...);
  }(std::index_sequence_for<Rest...>());
  put(warp, o[0], made, mask);
}

template <class Op, class T, unsigned N> Handler floatHandler(bool isPlain) {
  if constexpr (N == 1)
    return isPlain ? each<Plain<Op>, T, T> : modified<Op, T>;
  else if constexpr (N == 2)
    return isPlain ? each<Plain<Op>, T, T, T> : modified<Op, T, T>;
  else
    return isPlain ? each<Plain<Op>, T, T, T, T> : modified<Op, T, T, T>;
}

/// Emits Op for a floating-point type; modifiers but .approx, .full and .relu have been taken.
template <class Op, unsigned N> void floatOp(Decoder &d, Type type) {
  d.take("approx");
  d.take("full");
  d.now.option |= d.take("relu") ? Relu : 0;
  d.useAll(type, N + 1);
  Instruction &i = d.now;
  bool isPlain = !i.isFlushing && !i.isSaturating && !i.option && !i.rounding;
  if (i.rounding && type != Type::F32 && type != Type::F64)
    d.fail("f16 and bf16 are rounded to nearest only");
  Handler made = nullptr;
  switch (type) {
  case Type::F16:
    made = floatHandler<Op, Half, N>(isPlain);
    break;
  case Type::BF16:
    made = floatHandler<Op, Brain, N>(isPlain);
    break;
  case Type::F16x2:
    made = floatHandler<Op, Pair<Half>, N>(isPlain);
    break;
  case Type::BF16x2:
    made = floatHandler<Op, Pair<Brain>, N>(isPlain);
    break;
  case Type::F32:
    made = floatHandler<Op, float, N>(isPlain);
    break;
  case Type::F64:
    made = floatHandler<Op, double, N>(isPlain);
    break;
  default:
    break;
  }
  d.emit(made, Class::Float);
}

} // namespace heddle::emulator
