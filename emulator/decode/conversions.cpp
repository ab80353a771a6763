// Conversions: cvt between all types, and mov, which packs and unpacks.
#include "emulator/decode/floats.h"
#include "emulator/decode/registers.h"

#include <algorithm>
#include <chrono>

namespace heddle::emulator {
namespace {

enum Option : uint8_t { IntegerRounding = 1, ReluOption = 2 };

template <class T> long double valueOf(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
    return float(x);
  else
    return x;
}

template <class T> T narrowed(long double x, Rounding mode) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>) {
    if (x != x)
      return std::bit_cast<T>(T::nan);
    return T(float(rounded(x, T::digits, T::least, T::most, mode)));
  } else if constexpr (std::is_same_v<T, float>) {
    return x != x ? std::bit_cast<float>(0x7fffffffu) : float(rounded(x, 24, -126, 128, mode));
  } else {
    return double(rounded(x, 53, -1022, 1024, mode));
  }
}

template <class To, class From> To toInteger(From x, const Instruction &i) {
  if constexpr (std::is_integral_v<From>) {
    if (!i.isSaturating)
      return To(x);
    auto v = static_cast<__int128>(x);
    return To(
        std::clamp<__int128>(v, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  } else {
    long double v = valueOf(i.isFlushing ? flushed(x) : x);
    if (v != v)
      return 0;
    v = roundedInteger(v, Rounding(i.rounding));
    if (v <= std::numeric_limits<To>::min())
      return std::numeric_limits<To>::min();
    if (v >= static_cast<long double>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return To(v);
  }
}

template <class To, class From> To toFloat(From x, const Instruction &i) {
  if constexpr (std::is_same_v<To, From>)
    if (!(i.option & IntegerRounding) && !i.isFlushing && !i.isSaturating &&
        !(i.option & ReluOption))
      return x;
  if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>)
    if constexpr (std::is_same_v<From, float>)
      if (!i.rounding && !i.option && !i.isFlushing && !i.isSaturating)
        return canonical(To(x));
  From from = i.isFlushing ? flushed(x) : x;
  long double v = valueOf(from);
  if (i.option & IntegerRounding)
    v = copysignl(roundedInteger(v, Rounding(i.rounding)), v);
  To made = narrowed<To>(v, i.option & IntegerRounding ? Rounding::Nearest : Rounding(i.rounding));
  if (i.option & ReluOption)
    made = positive(made);
  made = i.isFlushing ? flushed(made) : made;
  if (i.isSaturating)
    made = saturated(made);
  return made;
}

template <class To, class From>
void convert(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  From from[kLanes];
  To made[kLanes];
  gather(w, i.operands[1], from);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if constexpr (std::is_integral_v<To>)
      made[lane] = toInteger<To>(from[lane], i);
    else
      made[lane] = toFloat<To>(from[lane], i);
  putWide(w, i.operands[0], made, mask);
}

/// Widening and narrowing that needs no modifiers.
template <class To, class From>
void simple(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  if (i.operands[1].bytes != sizeof(From) || i.operands[0].bytes != sizeof(To))
    return convert<To, From>(b, w, i, mask);
  alignas(64) To made[kLanes];
  const From *from = w.at<From>(i.operands[1]);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, Brain>)
      made[lane] = canonical(float(from[lane]));
    else
      made[lane] = To(from[lane]);
  put(w, i.operands[0], made, mask);
}

template <class T> constexpr bool isNarrow = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;

template <class To, class From> Handler conversion(const Instruction &i) {
  if (!i.isFlushing && !i.isSaturating && !i.option) {
    if constexpr (std::is_integral_v<To> && std::is_integral_v<From>)
      return simple<To, From>;
    if constexpr (std::is_same_v<To, float> && isNarrow<From>)
      return simple<To, From>;
    if constexpr (std::is_floating_point_v<To> &&
                  (std::is_integral_v<From> || std::is_same_v<From, float>))
      if (!i.rounding)
        return simple<To, From>;
  }
  return convert<To, From>;
}

/// Two f32 into the halves of a register: the first becomes the high one.
template <class T> void pack(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const float *high = w.at<float>(i.operands[1]), *low = w.at<float>(i.operands[2]);
  Pair<T> made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made[lane] = {toFloat<T>(low[lane], i), toFloat<T>(high[lane], i)};
  put(w, i.operands[0], made, mask);
}

void toTensor(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const float *from = w.at<float>(i.operands[1]);
  float made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made[lane] = float(rounded(from[lane], 11, -126, 128, Rounding(i.rounding)));
  put(w, i.operands[0], made, mask);
}

void cvt(Decoder &d) {
  bool isInteger = false, isGiven = false;
  d.takeRounding(&isInteger, &isGiven);
  d.takeFlags();
  d.now.option = d.take("relu") ? ReluOption : 0;
  Type to = d.takeType(), from = d.takeType();
  bool isPair = to == Type::F16x2 || to == Type::BF16x2;
  d.expect(isPair ? 3 : 2, isPair ? 3 : 2);
  if (to == Type::TF32) {
    d.use(d.target(d.arguments()[0], Type::B32));
    d.use(d.source(d.arguments()[1], Type::F32));
    d.emit(from == Type::F32 ? toTensor : nullptr, Class::Convert);
    return;
  }
  if (isPair) {
    if (from != Type::F32)
      d.fail("pairs are made of .f32");
    d.use(d.target(d.arguments()[0], Type::B32));
    d.use(d.source(d.arguments()[1], Type::F32));
    d.use(d.source(d.arguments()[2], Type::F32));
    d.emit(to == Type::F16x2 ? pack<Half> : pack<Brain>, Class::Convert);
    return;
  }
  if (isInteger && isFloat(to))
    d.now.option |= IntegerRounding;
  if (isFloat(from) && !isFloat(to) && !isInteger)
    d.fail("a float to an integer needs .rni, .rzi, .rmi or .rpi");
  bool isNarrowing = isFloat(to) && (!isFloat(from) || bytesOf(to) < bytesOf(from));
  if (isNarrowing && !isGiven)
    d.fail("it needs .rn, .rz, .rm or .rp");
  d.use(d.target(d.arguments()[0], to, true));
  d.use(d.source(d.arguments()[1], from, true));
  Handler made = nullptr;
  withType(to, [&](auto toZero) {
    withType(from, [&](auto fromZero) {
      made = conversion<decltype(toZero), decltype(fromZero)>(d.now);
    });
  });
  d.emit(made, Class::Convert);
}

template <class T> struct Same {
  static void run(Block &, Warp &w, const Instruction &i, uint32_t mask) {
    put(w, i.operands[0], w.at<T>(i.operands[1]), mask);
  }
};

Handler copying(unsigned bytes) {
  return bytes == 2   ? Same<uint16_t>::run
         : bytes == 4 ? Same<uint32_t>::run
         : bytes == 8 ? Same<uint64_t>::run
                      : nullptr;
}

void movMask(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  putMask(w, i.operands[0], w.mask(i.operands[1]), mask);
}

/// Operands: the whole, then the parts.
void unpack(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  unsigned bytes = o[1].bytes;
  alignas(64) uint8_t whole[kLanes * 8];
  memcpy(whole, w.at<uint8_t>(o[0]), kLanes * o[0].bytes);
  for (unsigned k = 1; k < i.count; ++k)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (mask >> lane & 1)
        memcpy(w.at<uint8_t>(o[k]) + lane * bytes, whole + lane * o[0].bytes + (k - 1) * bytes,
               bytes);
}
void join(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  unsigned bytes = o[1].bytes;
  alignas(64) uint8_t whole[kLanes * 8];
  for (unsigned k = 1; k < i.count; ++k)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      memcpy(whole + lane * o[0].bytes + (k - 1) * bytes, w.at<uint8_t>(o[k]) + lane * bytes,
             bytes);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (mask >> lane & 1)
      memcpy(w.at<uint8_t>(o[0]) + lane * o[0].bytes, whole + lane * o[0].bytes, o[0].bytes);
}

void movParts(Decoder &d, Type type, bool isUnpack) {
  const Argument &whole = d.arguments()[isUnpack ? 1 : 0], &list = d.arguments()[isUnpack ? 0 : 1];
  if (whole.kind == Argument::Vector || (list.parts.size() != 2 && list.parts.size() != 4))
    d.fail("it packs or unpacks 2 or 4 values");
  unsigned bytes = bytesOf(type) / static_cast<unsigned>(list.parts.size());
  Type part = bytes == 2 ? Type::B16 : bytes == 4 ? Type::B32 : Type::None;
  if (part == Type::None)
    d.fail("its parts are of 16 or 32 bits");
  d.use(isUnpack ? d.source(whole, type) : d.target(whole, type));
  for (const Argument &each : list.parts)
    d.use(isUnpack ? d.target(each, part) : d.source(each, part));
  d.emit(isUnpack ? unpack : join, Class::Other);
}

/// Numbers of the host's clock; `option` says which width.
void clockOf(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  uint64_t wide[kLanes];
  uint32_t narrow[kLanes];
  std::fill_n(wide, kLanes, now);
  std::fill_n(narrow, kLanes, static_cast<uint32_t>(now));
  i.operands[0].bytes == 8 ? put(w, i.operands[0], wide, mask)
                           : put(w, i.operands[0], narrow, mask);
}

void mov(Decoder &d) {
  Type type = d.takeType();
  d.expect(2, 2);
  const Argument &to = d.arguments()[0], &from = d.arguments()[1];
  if (type == Type::Pred) {
    d.use(d.predicate(to, true));
    d.use(d.predicate(from));
    d.emit(movMask, Class::Other);
  } else if (to.kind == Argument::Vector || from.kind == Argument::Vector) {
    movParts(d, type, to.kind == Argument::Vector);
  } else if (from.name == "%clock" || from.name == "%clock64" || from.name == "%globaltimer" ||
             from.name == "%clock_hi" || from.name == "%globaltimer_lo") {
    d.use(d.target(to, type));
    d.emit(bytesOf(type) >= 4 ? clockOf : nullptr, Class::Other);
  } else {
    d.use(d.target(to, type));
    d.use(d.source(from, type));
    d.emit(copying(bytesOf(type)), Class::Other);
  }
}

} // namespace

void addConversions(Opcodes &all) {
  all["cvt"] = cvt;
  all["mov"] = mov;
}

} // namespace heddle::emulator
