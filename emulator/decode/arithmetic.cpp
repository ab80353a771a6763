// Arithmetic: integers of 16 to 64 bits, with carries, and dot products of bytes.
#include "emulator/decode/floats.h"

#include <algorithm>

namespace heddle::emulator {
namespace {

/// Unsigned type in which sums and products wrap.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 8,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

struct Add {
  template <class T> static T apply(T a, T b) { return T(Wrapping<T>(a) + Wrapping<T>(b)); }
};
struct Sub {
  template <class T> static T apply(T a, T b) { return T(Wrapping<T>(a) - Wrapping<T>(b)); }
};
struct AddSat {
  template <class T> static T apply(T a, T b) {
    return T(std::clamp<int64_t>(int64_t(a) + b, INT32_MIN, INT32_MAX));
  }
};
struct SubSat {
  template <class T> static T apply(T a, T b) {
    return T(std::clamp<int64_t>(int64_t(a) - b, INT32_MIN, INT32_MAX));
  }
};
struct MulLow {
  template <class T> static T apply(T a, T b) { return T(Wrapping<T>(a) * Wrapping<T>(b)); }
};
struct MulHigh {
  template <class T> static T apply(T a, T b) {
    return T((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T)));
  }
};
struct MulWide {
  template <class R, class T> static R apply(T a, T b) { return R(R(a) * R(b)); }
};
template <bool IsHigh> struct Mul24 {
  template <class T> static T apply(T a, T b) {
    int64_t x, y;
    if constexpr (std::is_signed_v<T>)
      x = int32_t(uint32_t(a) << 8) >> 8, y = int32_t(uint32_t(b) << 8) >> 8;
    else
      x = a & 0xffffff, y = b & 0xffffff;
    return T((x * y) >> (IsHigh ? 16 : 0));
  }
};
template <class Product> struct Mad {
  template <class R, class T> static R apply(T a, T b, R c) {
    return Add::apply<R>(Product::template apply<R>(a, b), c);
  }
};
struct Div {
  template <class T> static T apply(T a, T b) {
    if (b == 0)
      return T(-1);
    return std::is_signed_v<T> && b == T(-1) ? Sub::apply<T>(0, a) : T(a / b);
  }
};
struct Rem {
  template <class T> static T apply(T a, T b) {
    if (b == 0)
      return a;
    return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  }
};
struct Min {
  template <class T> static T apply(T a, T b) { return a < b ? a : b; }
};
struct Max {
  template <class T> static T apply(T a, T b) { return a < b ? b : a; }
};
struct Neg {
  template <class T> static T apply(T a) { return Sub::apply<T>(0, a); }
};
struct Abs {
  template <class T> static T apply(T a) { return a < T(0) ? Sub::apply<T>(0, a) : a; }
};
struct Sad {
  template <class T> static T apply(T a, T b, T c) {
    return Add::apply<T>(a < b ? Sub::apply<T>(b, a) : Sub::apply<T>(a, b), c);
  }
};

/// a + b + carry (or a - b - carry), with the mask of carries read and written as asked.
template <class T, bool IsSub> void withCarry(Block &, Warp &w, const Instruction &i, uint32_t m) {
  const Operand *o = i.operands;
  const T *a = w.at<T>(o[1]), *b = w.at<T>(o[2]);
  uint32_t &carry = w.mask(o[3]), out = 0;
  T made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    T in = i.isReturning ? carry >> lane & 1 : 0, part, sum;
    bool first = IsSub ? __builtin_sub_overflow(a[lane], b[lane], &part)
                       : __builtin_add_overflow(a[lane], b[lane], &part);
    bool second =
        IsSub ? __builtin_sub_overflow(part, in, &sum) : __builtin_add_overflow(part, in, &sum);
    made[lane] = sum;
    out |= uint32_t(first || second) << lane;
  }
  put(w, o[0], made, m);
  if (i.option)
    putMask(w, o[3], out, m);
}

template <bool IsSub>
void carrying(Decoder &d, Type type, bool isIn, bool isOut, Operand *product) {
  unsigned bytes = bytesOf(type);
  if (bytes != 4 && bytes != 8)
    d.fail("carries are of 32 and 64 bits");
  d.use(d.target(d.arguments()[0], type));
  d.use(product ? *product : d.source(d.arguments()[1], type));
  d.use(d.source(d.arguments()[product ? 3 : 2], type));
  d.use(d.carry());
  d.now.isReturning = isIn;
  d.now.option = isOut;
  d.emit(bytes == 4 ? withCarry<uint32_t, IsSub> : withCarry<uint64_t, IsSub>, Class::Integer);
}

template <class Op, class Saturating, class OfFloats, bool IsSub, bool IsIn>
void addOrSub(Decoder &d) {
  bool isOut = d.take("cc");
  d.takeFlags();
  d.takeRounding();
  Type type = d.takeType();
  if (isFloat(type))
    return floatOp<OfFloats, 2>(d, type);
  if (isOut || IsIn) {
    d.expect(3, 3);
    return carrying<IsSub>(d, type, IsIn, isOut, nullptr);
  }
  d.useAll(type, 3);
  if (d.now.isSaturating)
    d.emit(type == Type::S32 ? each<Saturating, int32_t, int32_t, int32_t> : nullptr,
           Class::Integer);
  else
    d.emit(ofIntegers<Op, 2>(type), Class::Integer);
}

template <class Op> Handler wideOf(Type type, bool isMad) {
  switch (type) {
  case Type::U16:
    return isMad ? each<Mad<Op>, uint32_t, uint16_t, uint16_t, uint32_t>
                 : each<Op, uint32_t, uint16_t, uint16_t>;
  case Type::S16:
    return isMad ? each<Mad<Op>, int32_t, int16_t, int16_t, int32_t>
                 : each<Op, int32_t, int16_t, int16_t>;
  case Type::U32:
    return isMad ? each<Mad<Op>, uint64_t, uint32_t, uint32_t, uint64_t>
                 : each<Op, uint64_t, uint32_t, uint32_t>;
  case Type::S32:
    return isMad ? each<Mad<Op>, int64_t, int32_t, int32_t, int64_t>
                 : each<Op, int64_t, int32_t, int32_t>;
  default:
    return nullptr;
  }
}

Type doubled(Type type) { return type == Type::U16 || type == Type::S16 ? Type::B32 : Type::B64; }

template <class Product> void mulOrMad(Decoder &d, Type type, bool isMad) {
  d.useAll(type, isMad ? 4 : 3);
  d.emit(isMad ? ofIntegers<Mad<Product>, 3>(type) : ofIntegers<Product, 2>(type), Class::Integer);
}

template <bool IsMad> void mul(Decoder &d) {
  bool isWide = d.take("wide"), isHigh = d.take("hi"), isLow = d.take("lo");
  d.takeFlags();
  d.takeRounding();
  Type type = d.takeType();
  if (isFloat(type)) {
    if constexpr (IsMad)
      return floatOp<Fma, 3>(d, type);
    else
      return floatOp<FloatMul, 2>(d, type);
  }
  if (isWide) {
    d.expect(IsMad ? 4 : 3, IsMad ? 4 : 3);
    d.use(d.target(d.arguments()[0], doubled(type)));
    d.use(d.source(d.arguments()[1], type));
    d.use(d.source(d.arguments()[2], type));
    if (IsMad)
      d.use(d.source(d.arguments()[3], doubled(type)));
    d.emit(wideOf<MulWide>(type, IsMad), Class::Integer);
  } else if (isHigh) {
    mulOrMad<MulHigh>(d, type, IsMad);
  } else if (isLow) {
    mulOrMad<MulLow>(d, type, IsMad);
  } else {
    d.fail(".lo, .hi or .wide is missing");
  }
}

template <bool IsMad> void mul24(Decoder &d) {
  bool isHigh = d.take("hi");
  if (!isHigh && !d.take("lo"))
    d.fail(".lo or .hi is missing");
  Type type = d.takeType();
  if (type != Type::S32 && type != Type::U32)
    d.fail("its types are .u32 and .s32");
  isHigh ? mulOrMad<Mul24<true>>(d, type, IsMad) : mulOrMad<Mul24<false>>(d, type, IsMad);
}

/// mad.cc and madc: the product, then a sum with carry.
template <bool IsIn> void madWithCarry(Decoder &d) {
  bool isHigh = d.take("hi");
  d.take("lo");
  bool isOut = d.take("cc");
  if (!IsIn && !isOut)
    return mul<true>(d);
  Type type = d.takeType();
  d.expect(4, 4);
  Operand product = d.scratch(bytesOf(type));
  Instruction kept = d.now;
  d.use(product);
  d.use(d.source(d.arguments()[1], type));
  d.use(d.source(d.arguments()[2], type));
  d.emit(isHigh ? ofIntegers<MulHigh, 2>(type) : ofIntegers<MulLow, 2>(type), Class::Integer);
  d.now = kept;
  carrying<false>(d, type, IsIn, isOut, &product);
}
void mad(Decoder &d) {
  if (d.arguments().size() == 4 && d.has("cc"))
    madWithCarry<false>(d);
  else
    mul<true>(d);
}

template <class Op, unsigned N> void integers(Decoder &d) {
  Type type = d.takeType();
  d.useAll(type, N + 1);
  d.emit(ofIntegers<Op, N>(type), Class::Integer);
}

template <class Op, class OfFloats, unsigned N> void either(Decoder &d) {
  d.takeFlags();
  d.takeRounding();
  bool isNaN = d.take("NaN");
  Type type = d.takeType();
  d.now.option = isNaN;
  if (isFloat(type))
    return floatOp<OfFloats, N>(d, type);
  d.useAll(type, N + 1);
  d.emit(ofIntegers<Op, N>(type), Class::Integer);
}

template <bool IsSigned> int64_t part(uint32_t word, unsigned k, unsigned bits) {
  int64_t value = (word >> (k * bits)) & ((1u << bits) - 1);
  return IsSigned && value >> (bits - 1) ? value - (int64_t(1) << bits) : value;
}
template <bool A, bool B, unsigned Step> struct Dot { // Step: bits of an element of a
  template <class T> static T apply(uint32_t a, uint32_t b, T c) {
    int64_t sum = 0;
    for (unsigned k = 0; k < 32 / Step; ++k)
      sum += part<A>(a, k, Step) * part<B>(b, k, 8);
    return T(uint32_t(c) + uint32_t(sum));
  }
};
template <unsigned Step> void dot(Decoder &d) {
  bool isHigh = Step == 16 && d.take("hi");
  if (Step == 16 && !isHigh && !d.take("lo"))
    d.fail(".lo or .hi is missing");
  Type a = d.takeType(), b = d.takeType();
  bool isA = a == Type::S32, isB = b == Type::S32;
  if ((!isA && a != Type::U32) || (!isB && b != Type::U32))
    d.fail("its types are .u32 and .s32");
  if (isHigh)
    d.fail(".hi is not known here");
  d.useAll(Type::B32, 4);
  using T = uint32_t;
  d.emit(isA   ? isB ? each<Dot<true, true, Step>, T, T, T, T>
                     : each<Dot<true, false, Step>, T, T, T, T>
           : isB ? each<Dot<false, true, Step>, T, T, T, T>
               : each<Dot<false, false, Step>, T, T, T, T>,
         Class::Integer);
}

} // namespace

void addArithmetic(Opcodes &all) {
  all["add"] = addOrSub<Add, AddSat, FloatAdd, false, false>;
  all["sub"] = addOrSub<Sub, SubSat, FloatSub, true, false>;
  all["addc"] = addOrSub<Add, AddSat, FloatAdd, false, true>;
  all["subc"] = addOrSub<Sub, SubSat, FloatSub, true, true>;
  all["mul"] = mul<false>;
  all["mad"] = mad;
  all["madc"] = madWithCarry<true>;
  all["mul24"] = mul24<false>;
  all["mad24"] = mul24<true>;
  all["div"] = either<Div, FloatDiv, 2>;
  all["rem"] = integers<Rem, 2>;
  all["min"] = either<Min, FloatMin, 2>;
  all["max"] = either<Max, FloatMax, 2>;
  all["neg"] = either<Neg, FloatNeg, 1>;
  all["abs"] = either<Abs, FloatAbs, 1>;
  all["sad"] = integers<Sad, 3>;
  all["dp4a"] = dot<8>;
  all["dp2a"] = dot<16>;
}

} // namespace heddle::emulator
