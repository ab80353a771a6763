// Atomics: atom and red, one lane after the other.
#include "emulator/decode/floats.h"
#include "emulator/decode/memory.h"

#include <bit>
#include <utility>

namespace heddle::emulator {
namespace {

struct AtomicAdd {
  template <class T> static T apply(T old, T b, T) {
    if constexpr (std::is_integral_v<T>)
      return T(std::make_unsigned_t<T>(old) + std::make_unsigned_t<T>(b));
    else
      return calculate<FloatAdd>(old, b);
  }
};
struct AtomicMin {
  template <class T> static T apply(T old, T b, T) { return b < old ? b : old; }
};
struct AtomicMax {
  template <class T> static T apply(T old, T b, T) { return old < b ? b : old; }
};
struct AtomicAnd {
  template <class T> static T apply(T old, T b, T) { return old & b; }
};
struct AtomicOr {
  template <class T> static T apply(T old, T b, T) { return old | b; }
};
struct AtomicXor {
  template <class T> static T apply(T old, T b, T) { return old ^ b; }
};
struct Exchange {
  template <class T> static T apply(T, T b, T) { return b; }
};
struct Compare {
  template <class T> static T apply(T old, T b, T c) { return old == b ? c : old; }
};
struct Increment {
  template <class T> static T apply(T old, T b, T) { return old >= b ? 0 : old + 1; }
};
struct Decrement {
  template <class T> static T apply(T old, T b, T) { return old == 0 || old > b ? b : old - 1; }
};

/// Operands: old value, b, c, address.
template <class Op, class T> void atomic(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  std::lock_guard lock(b.machine.atomics);
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = std::countr_zero(rest);
    uint8_t *place = b.access(w, i, lane, i.space, addressOf(w, o[3], i.number, lane), sizeof(T),
                              Access::Atomic);
    T old;
    memcpy(&old, place, sizeof(T));
    T made = Op::template apply<T>(old, w.at<T>(o[1])[lane], w.at<T>(o[2])[lane]);
    memcpy(place, &made, sizeof(T));
    w.at<T>(o[0])[lane] = old;
  }
}

template <class Op> Handler ofWords(Type type) {
  switch (type) {
  case Type::U32:
  case Type::B32:
    return atomic<Op, uint32_t>;
  case Type::S32:
    return atomic<Op, int32_t>;
  case Type::U64:
  case Type::B64:
    return atomic<Op, uint64_t>;
  case Type::S64:
    return atomic<Op, int64_t>;
  default:
    return nullptr;
  }
}

Handler adding(Type type) {
  switch (type) {
  case Type::F16:
    return atomic<AtomicAdd, Half>;
  case Type::BF16:
    return atomic<AtomicAdd, Brain>;
  case Type::F16x2:
    return atomic<AtomicAdd, Pair<Half>>;
  case Type::BF16x2:
    return atomic<AtomicAdd, Pair<Brain>>;
  case Type::F32:
    return atomic<AtomicAdd, float>;
  case Type::F64:
    return atomic<AtomicAdd, double>;
  default:
    return ofWords<AtomicAdd>(type);
  }
}

Handler comparing(Type type) {
  return bytesOf(type) == 2 ? atomic<Compare, uint16_t> : ofWords<Compare>(type);
}

Handler counted(Type type, bool isUp) {
  if (type != Type::U32)
    return nullptr;
  return isUp ? atomic<Increment, uint32_t> : atomic<Decrement, uint32_t>;
}

void atomicOp(Decoder &d, bool isReturning) {
  takeMemoryWords(d);
  d.now.space = takeSpace(d);
  using Maker = Handler (*)(Type);
  static constexpr std::pair<const char *, Maker> words[] = {
      {"add", adding},
      {"min", ofWords<AtomicMin>},
      {"max", ofWords<AtomicMax>},
      {"and", ofWords<AtomicAnd>},
      {"or", ofWords<AtomicOr>},
      {"xor", ofWords<AtomicXor>},
      {"exch", ofWords<Exchange>},
      {"cas", comparing},
      {"inc", [](Type type) { return counted(type, true); }},
      {"dec", [](Type type) { return counted(type, false); }}};
  Maker maker = nullptr;
  bool isCompare = false;
  for (const auto &[word, each] : words)
    if (!maker && d.take(word))
      maker = each, isCompare = each == comparing;
  if (!maker)
    d.fail("its operation is not known");
  d.take("noftz");
  Type type = d.takeType();
  size_t first = isReturning, count = first + 2 + isCompare;
  d.expect(count, count);
  d.use(isReturning ? d.target(d.arguments()[0], type) : d.scratch(bytesOf(type)));
  Operand b = d.source(d.arguments()[first + 1], type);
  d.use(b);
  d.use(isCompare ? d.source(d.arguments()[first + 2], type) : b);
  d.useAddress(d.arguments()[first], d.now.space);
  d.emit(maker(type), Class::Atomic);
}

} // namespace

void addAtomics(Opcodes &all) {
  all["atom"] = [](Decoder &d) { atomicOp(d, true); };
  all["red"] = [](Decoder &d) { atomicOp(d, false); };
}

} // namespace heddle::emulator
