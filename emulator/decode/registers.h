// Registers: values that are narrower than the registers that hold them.
#pragma once

#include "emulator/decode/decoder.h"
#include "emulator/decode/lanes.h"

namespace heddle::emulator {

/// Low bytes of a register's values.
template <class T> void gather(const Warp &warp, const Operand &o, T *values) {
  const uint8_t *from = warp.at<uint8_t>(o);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    memcpy(values + lane, from + lane * o.bytes, sizeof(T));
}

/// One value into a register that may be wider: signs are kept.
template <class T> void putLane(const Warp &warp, const Operand &o, unsigned lane, T value) {
  if (o.bytes == sizeof(T)) {
    warp.at<T>(o)[lane] = value;
  } else if constexpr (std::is_integral_v<T>) {
    auto wide = static_cast<int64_t>(value);
    memcpy(warp.at<uint8_t>(o) + lane * o.bytes, &wide, o.bytes);
  }
}

template <class T>
void putWide(const Warp &warp, const Operand &o, const T *values, uint32_t mask) {
  if (o.bytes == sizeof(T))
    return put(warp, o, values, mask);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (mask >> lane & 1)
      putLane(warp, o, lane, values[lane]);
}

/// Calls `f` with a value of the C++ type of a type; false when it has none.
template <class F> bool withType(Type type, F f) {
  switch (type) {
  case Type::B8:
  case Type::U8:
    return f(uint8_t()), true;
  case Type::B16:
  case Type::U16:
    return f(uint16_t()), true;
  case Type::B32:
  case Type::U32:
    return f(uint32_t()), true;
  case Type::B64:
  case Type::U64:
    return f(uint64_t()), true;
  case Type::S8:
    return f(int8_t()), true;
  case Type::S16:
    return f(int16_t()), true;
  case Type::S32:
    return f(int32_t()), true;
  case Type::S64:
    return f(int64_t()), true;
  case Type::F16:
    return f(Half()), true;
  case Type::BF16:
    return f(Brain()), true;
  case Type::F32:
    return f(float()), true;
  case Type::F64:
    return f(double()), true;
  default:
    return false;
  }
}

} // namespace heddle::emulator
