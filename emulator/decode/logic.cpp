// Logic: bits, shifts, comparisons, selections.
#include "emulator/decode/floats.h"

#include <algorithm>

namespace heddle::emulator {
namespace {

struct And {
  template <class T> static T apply(T a, T b) { return a & b; }
};
struct Or {
  template <class T> static T apply(T a, T b) { return a | b; }
};
struct Xor {
  template <class T> static T apply(T a, T b) { return a ^ b; }
};
struct Not {
  template <class T> static T apply(T a) { return T(~a); }
};
struct Cnot {
  template <class T> static T apply(T a) { return a == 0; }
};
struct Left {
  template <class T> static T apply(T a, uint32_t by) {
    constexpr uint32_t bits = 8 * sizeof(T);
    return by < bits ? T(std::make_unsigned_t<T>(a) << (by % bits)) : T(0);
  }
};
struct Right {
  template <class T> static T apply(T a, uint32_t by) {
    constexpr uint32_t bits = 8 * sizeof(T);
    return by < bits ? T(a >> (by % bits)) : T(a < 0 ? -1 : 0);
  }
};
struct Field { // bfe
  template <class T> static T apply(T a, uint32_t at, uint32_t count) {
    constexpr int bits = 8 * sizeof(T);
    int begin = at & 255, length = count & 255;
    bool sign =
        std::is_signed_v<T> && length > 0 && (a >> std::min(begin + length - 1, bits - 1) & 1);
    auto field = std::make_unsigned_t<T>(begin < bits ? std::make_unsigned_t<T>(a) >> begin : 0);
    if (length < bits) {
      auto kept = (std::make_unsigned_t<T>(1) << length) - 1;
      field = (field & kept) | (sign ? ~kept : 0);
    }
    if (sign && begin > 0 && length >= bits - begin)
      field |= begin < bits ? ~(~std::make_unsigned_t<T>(0) >> begin) : ~std::make_unsigned_t<T>(0);
    return T(field);
  }
};
struct Insert { // bfi
  template <class T> static T apply(T a, T b, uint32_t at, uint32_t count) {
    constexpr unsigned bits = 8 * sizeof(T);
    unsigned begin = at & 255, length = std::min(count & 255, bits);
    if (begin >= bits || length == 0)
      return b;
    T kept = length == bits ? ~T(0) : (T(1) << length) - 1;
    return (b & ~(kept << begin)) | ((a & kept) << begin);
  }
};
struct Reverse {
  template <class T> static T apply(T a) {
    T made = 0;
    for (unsigned k = 0; k < 8 * sizeof(T); ++k)
      made |= T(a >> k & 1) << (8 * sizeof(T) - 1 - k);
    return made;
  }
};
struct Count {
  template <class R, class T> static R apply(T a) { return R(std::popcount(a)); }
};
struct Leading {
  template <class R, class T> static R apply(T a) { return R(std::countl_zero(a)); }
};
template <bool IsShift> struct Find { // bfind
  template <class R, class T> static R apply(T a) {
    using U = std::make_unsigned_t<T>;
    U bits = std::is_signed_v<T> && a < 0 ? U(~a) : U(a);
    if (!bits)
      return ~R(0);
    R zeros = R(std::countl_zero(bits));
    return IsShift ? zeros : R(8 * sizeof(T) - 1) - zeros;
  }
};
struct Permute { // prmt
  template <class T> static T apply(T a, T b, T how) {
    uint64_t all = uint64_t(b) << 32 | a;
    T made = 0;
    for (unsigned k = 0; k < 4; ++k) {
      unsigned choice = how >> (4 * k) & 15;
      T byte = all >> (8 * (choice & 7)) & 255;
      made |= (choice & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * k);
    }
    return made;
  }
};
template <bool IsLeft, bool IsWrap> struct Funnel { // shf
  template <class T> static T apply(T low, T high, uint32_t by) {
    uint64_t both = uint64_t(high) << 32 | low;
    by = IsWrap ? by & 31 : std::min(by, 32u);
    return IsLeft ? T(both << by >> 32) : T(both >> by);
  }
};

template <class Op> void ofMasks(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  putMask(w, o[0], Op::template apply<uint32_t>(w.mask(o[1]), w.mask(o[2])), mask);
}
void notOfMask(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  putMask(w, i.operands[0], ~w.mask(i.operands[1]), mask);
}

template <class Op> void logic(Decoder &d) {
  Type type = d.takeType();
  if (type != Type::Pred) {
    d.useAll(type, 3);
    d.emit(ofIntegers<Op, 2>(type), Class::Integer);
    return;
  }
  d.expect(3, 3);
  for (size_t k = 0; k < 3; ++k)
    d.use(d.predicate(d.arguments()[k], k == 0));
  d.emit(ofMasks<Op>, Class::Integer);
}

template <class Op> void one(Decoder &d) {
  Type type = d.takeType();
  if (type == Type::Pred) {
    d.expect(2, 2);
    d.use(d.predicate(d.arguments()[0], true));
    d.use(d.predicate(d.arguments()[1]));
    d.emit(notOfMask, Class::Integer);
    return;
  }
  d.useAll(type, 2);
  d.emit(ofIntegers<Op, 1>(type), Class::Integer);
}

template <class Op, class... Amounts> Handler shifting(Type type) {
  switch (bytesOf(type)) {
  case 2:
    return isSigned(type) ? each<Op, int16_t, int16_t, Amounts...>
                          : each<Op, uint16_t, uint16_t, Amounts...>;
  case 4:
    return isSigned(type) ? each<Op, int32_t, int32_t, Amounts...>
                          : each<Op, uint32_t, uint32_t, Amounts...>;
  case 8:
    return isSigned(type) ? each<Op, int64_t, int64_t, Amounts...>
                          : each<Op, uint64_t, uint64_t, Amounts...>;
  default:
    return nullptr;
  }
}

template <class Op, class... Amounts> void shift(Decoder &d) {
  Type type = d.takeType();
  size_t count = 2 + sizeof...(Amounts);
  d.expect(count, count);
  d.use(d.target(d.arguments()[0], type));
  d.use(d.source(d.arguments()[1], type));
  for (size_t k = 2; k < count; ++k)
    d.use(d.source(d.arguments()[k], Type::U32));
  if (isFloat(type) || bytesOf(type) < 2)
    d.fail("it has no form for this type");
  d.emit(shifting<Op, Amounts...>(type), Class::Integer);
}

void insert(Decoder &d) {
  Type type = d.takeType();
  d.expect(5, 5);
  d.use(d.target(d.arguments()[0], type));
  for (size_t k = 1; k < 5; ++k)
    d.use(d.source(d.arguments()[k], k < 3 ? type : Type::U32));
  using U = uint32_t;
  d.emit(type == Type::B32   ? each<Insert, U, U, U, U, U>
         : type == Type::B64 ? each<Insert, uint64_t, uint64_t, uint64_t, U, U>
                             : nullptr,
         Class::Integer);
}

/// Results of 32 bits of a value of 32 or 64.
template <class Op> void counting(Decoder &d) {
  Type type = d.takeType();
  d.expect(2, 2);
  d.use(d.target(d.arguments()[0], Type::U32));
  d.use(d.source(d.arguments()[1], type));
  Handler made = nullptr;
  if (type == Type::B32 || type == Type::U32)
    made = each<Op, uint32_t, uint32_t>;
  else if (type == Type::B64 || type == Type::U64)
    made = each<Op, uint32_t, uint64_t>;
  if constexpr (!std::is_same_v<Op, Count> && !std::is_same_v<Op, Leading>) {
    if (type == Type::S32)
      made = each<Op, uint32_t, int32_t>;
    else if (type == Type::S64)
      made = each<Op, uint32_t, int64_t>;
  }
  d.emit(made, Class::Integer);
}
void find(Decoder &d) {
  if (d.take("shiftamt"))
    counting<Find<true>>(d);
  else
    counting<Find<false>>(d);
}

void reverse(Decoder &d) {
  Type type = d.takeType();
  d.useAll(type, 2);
  d.emit(type == Type::B32   ? each<Reverse, uint32_t, uint32_t>
         : type == Type::B64 ? each<Reverse, uint64_t, uint64_t>
                             : nullptr,
         Class::Integer);
}

void permute(Decoder &d) {
  Type type = d.takeType();
  d.useAll(Type::B32, 4);
  d.emit(type == Type::B32 ? uniform<Permute, uint32_t, 3>() : nullptr, Class::Integer);
}

void funnel(Decoder &d) {
  bool isLeft = d.take("l"), isRight = d.take("r"), isWrap = d.take("wrap");
  if (isLeft == isRight || (!isWrap && !d.take("clamp")) || d.takeType() != Type::B32)
    d.fail("its forms are .l and .r, .wrap and .clamp, of .b32");
  d.useAll(Type::B32, 4);
  d.emit(isLeft   ? isWrap ? uniform<Funnel<true, true>, uint32_t, 3>()
                           : uniform<Funnel<true, false>, uint32_t, 3>()
           : isWrap ? uniform<Funnel<false, true>, uint32_t, 3>()
                  : uniform<Funnel<false, false>, uint32_t, 3>(),
         Class::Integer);
}

void lop3Of(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  const auto *a = w.at<uint32_t>(o[1]), *b = w.at<uint32_t>(o[2]), *c = w.at<uint32_t>(o[3]);
  uint32_t made[kLanes] = {};
  for (unsigned k = 0; k < 8; ++k)
    if (i.option >> k & 1)
      for (unsigned lane = 0; lane < kLanes; ++lane)
        made[lane] |= (k & 4 ? a[lane] : ~a[lane]) & (k & 2 ? b[lane] : ~b[lane]) &
                      (k & 1 ? c[lane] : ~c[lane]);
  put(w, o[0], made, mask);
}
void lop3(Decoder &d) {
  d.expect(5, 5);
  if (d.takeType() != Type::B32 || d.arguments()[4].kind != Argument::Integer)
    d.fail("its form is .b32 with a number for the table");
  d.use(d.target(d.arguments()[0], Type::B32));
  for (size_t k = 1; k < 4; ++k)
    d.use(d.source(d.arguments()[k], Type::B32));
  d.now.option = static_cast<uint8_t>(d.arguments()[4].bits);
  d.emit(lop3Of, Class::Integer);
}

enum Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Num, Nan, Unordered = 8 };

template <class T> struct Plainly {
  using type = T;
};
template <> struct Plainly<Half> {
  using type = float;
};
template <> struct Plainly<Brain> {
  using type = float;
};

template <uint8_t How, class T> bool compares(T a, T b) {
  bool isUnordered = isNaN(a) || isNaN(b);
  switch (How & 7) {
  case Eq:
    return a == b || ((How & Unordered) && isUnordered);
  case Ne:
    return (a != b && !isUnordered) || ((How & Unordered) && isUnordered);
  case Lt:
    return a < b || ((How & Unordered) && isUnordered);
  case Le:
    return a <= b || ((How & Unordered) && isUnordered);
  case Gt:
    return a > b || ((How & Unordered) && isUnordered);
  case Ge:
    return a >= b || ((How & Unordered) && isUnordered);
  case Num:
    return !isUnordered;
  default:
    return isUnordered;
  }
}

/// Mask of lanes where a comparison holds.
template <uint8_t How, class T>
uint32_t comparison(const Warp &w, const Instruction &i, const Operand &x, const Operand &y) {
  using P = typename Plainly<T>::type;
  const T *a = w.at<T>(x), *b = w.at<T>(y);
  uint8_t holds[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    P p = P(a[lane]), q = P(b[lane]);
    if constexpr (std::is_same_v<T, float>)
      if (i.isFlushing)
        p = flushed(p), q = flushed(q);
    holds[lane] = compares<How>(p, q);
  }
  uint32_t made = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made |= uint32_t(holds[lane]) << lane;
  return made;
}

template <uint8_t How, class T> void setp(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands; // p, q, a, b, c
  uint32_t holds = comparison<How, T>(w, i, o[2], o[3]), fails = ~holds;
  if (i.option) {
    uint32_t with = w.mask(o[4]) ^ (i.isReturning ? kAllLanes : 0);
    auto joined = [&](uint32_t x) {
      return i.option == 1 ? x & with : i.option == 2 ? x | with : x ^ with;
    };
    holds = joined(holds), fails = joined(fails);
  }
  putMask(w, o[0], holds, mask);
  putMask(w, o[1], fails, mask);
}

template <uint8_t How, class T> void set(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  uint32_t holds = comparison<How, T>(w, i, i.operands[1], i.operands[2]), made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made[lane] = !(holds >> lane & 1) ? 0 : i.option ? 0x3f800000 : kAllLanes;
  put(w, i.operands[0], made, mask);
}

template <uint8_t How, bool IsSet> Handler comparing(Type type) {
  auto of = [](auto zero) -> Handler {
    return IsSet ? set<How, decltype(zero)> : setp<How, decltype(zero)>;
  };
  constexpr bool isOfAll = (How & 7) < Num && !(How & Unordered);
  switch (type) {
  case Type::F16:
    return of(Half());
  case Type::BF16:
    return of(Brain());
  case Type::F32:
    return of(float());
  case Type::F64:
    return of(double());
  default:
    break;
  }
  if constexpr (isOfAll)
    switch (type) {
    case Type::S16:
      return of(int16_t());
    case Type::S32:
      return of(int32_t());
    case Type::S64:
      return of(int64_t());
    case Type::U16:
    case Type::B16:
      return of(uint16_t());
    case Type::U32:
    case Type::B32:
      return of(uint32_t());
    case Type::U64:
    case Type::B64:
      return of(uint64_t());
    default:
      break;
    }
  return nullptr;
}

template <bool IsSet> Handler takeComparison(Decoder &d, Type &type, Type *result) {
  using Maker = Handler (*)(Type);
  static constexpr std::pair<const char *, Maker> words[] = {
      {"eq", comparing<Eq, IsSet>},
      {"ne", comparing<Ne, IsSet>},
      {"lt", comparing<Lt, IsSet>},
      {"le", comparing<Le, IsSet>},
      {"gt", comparing<Gt, IsSet>},
      {"ge", comparing<Ge, IsSet>},
      {"lo", comparing<Lt, IsSet>},
      {"ls", comparing<Le, IsSet>},
      {"hi", comparing<Gt, IsSet>},
      {"hs", comparing<Ge, IsSet>},
      {"equ", comparing < Eq | Unordered, IsSet > },
      {"neu", comparing < Ne | Unordered, IsSet > },
      {"ltu", comparing < Lt | Unordered, IsSet > },
      {"leu", comparing < Le | Unordered, IsSet > },
      {"gtu", comparing < Gt | Unordered, IsSet > },
      {"geu", comparing < Ge | Unordered, IsSet > },
      {"num", comparing<Num, IsSet>},
      {"nan", comparing<Nan, IsSet>}};
  for (const auto &[word, maker] : words)
    if (d.take(word)) {
      d.takeFlags();
      if (result)
        *result = d.takeType();
      type = d.takeType();
      return maker(type);
    }
  d.fail("the comparison is missing");
}

void setPredicate(Decoder &d) {
  uint8_t join = d.take("and") ? 1 : d.take("or") ? 2 : d.take("xor") ? 3 : 0;
  Type type;
  Handler made = takeComparison<false>(d, type, nullptr);
  d.expect(join ? 4 : 3, join ? 4 : 3);
  Argument first = d.arguments()[0], second = first;
  second.name = first.second.empty() ? "_" : first.second;
  first.second.clear();
  d.use(d.predicate(first, true));
  d.use(d.predicate(second, true));
  d.use(d.source(d.arguments()[1], type));
  d.use(d.source(d.arguments()[2], type));
  if (join) {
    Argument with = d.arguments()[3];
    d.now.isReturning = with.isNegated;
    d.use(d.predicate(with));
  }
  d.now.option = join;
  d.emit(made, isFloat(type) ? Class::Float : Class::Integer);
}

void setValue(Decoder &d) {
  Type type, result;
  Handler made = takeComparison<true>(d, type, &result);
  if (result != Type::U32 && result != Type::S32 && result != Type::F32)
    d.fail("its result is .u32, .s32 or .f32");
  d.expect(3, 3);
  d.use(d.target(d.arguments()[0], result));
  d.use(d.source(d.arguments()[1], type));
  d.use(d.source(d.arguments()[2], type));
  d.now.option = result == Type::F32;
  d.emit(made, Class::Integer);
}

template <class T> void selp(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  const T *a = w.at<T>(o[1]), *b = w.at<T>(o[2]);
  uint32_t which = w.mask(o[3]);
  T made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made[lane] = which >> lane & 1 ? a[lane] : b[lane];
  put(w, o[0], made, mask);
}

/// slct d, a, b, c: a where c >= 0.
template <class T, class C> void slct(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  const C *c = w.at<C>(o[3]);
  T made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made[lane] = c[lane] >= 0 ? w.at<T>(o[1])[lane] : w.at<T>(o[2])[lane];
  put(w, o[0], made, mask);
}

void select(Decoder &d) {
  Type type = d.takeType();
  d.expect(4, 4);
  d.use(d.target(d.arguments()[0], type));
  d.use(d.source(d.arguments()[1], type));
  d.use(d.source(d.arguments()[2], type));
  d.use(d.predicate(d.arguments()[3]));
  unsigned bytes = bytesOf(type);
  d.emit(bytes == 2   ? selp<uint16_t>
         : bytes == 4 ? selp<uint32_t>
         : bytes == 8 ? selp<uint64_t>
                      : nullptr,
         Class::Integer);
}

void selectBySign(Decoder &d) {
  d.takeFlags();
  Type type = d.takeType(), sign = d.takeType();
  d.expect(4, 4);
  d.use(d.target(d.arguments()[0], type));
  d.use(d.source(d.arguments()[1], type));
  d.use(d.source(d.arguments()[2], type));
  d.use(d.source(d.arguments()[3], sign));
  bool isInt = sign == Type::S32;
  if (!isInt && sign != Type::F32)
    d.fail("the sign is of .s32 or .f32");
  unsigned bytes = bytesOf(type);
  d.emit(bytes == 2   ? isInt ? slct<uint16_t, int32_t> : slct<uint16_t, float>
           : bytes == 4 ? isInt ? slct<uint32_t, int32_t> : slct<uint32_t, float>
           : bytes == 8 ? isInt ? slct<uint64_t, int32_t> : slct<uint64_t, float>
                        : nullptr,
         Class::Integer);
}

} // namespace

void addLogic(Opcodes &all) {
  all["and"] = logic<And>;
  all["or"] = logic<Or>;
  all["xor"] = logic<Xor>;
  all["not"] = one<Not>;
  all["cnot"] = one<Cnot>;
  all["shl"] = shift<Left, uint32_t>;
  all["shr"] = shift<Right, uint32_t>;
  all["bfe"] = shift<Field, uint32_t, uint32_t>;
  all["bfi"] = insert;
  all["bfind"] = find;
  all["brev"] = reverse;
  all["popc"] = counting<Count>;
  all["clz"] = counting<Leading>;
  all["prmt"] = permute;
  all["shf"] = funnel;
  all["lop3"] = lop3;
  all["setp"] = setPredicate;
  all["set"] = setValue;
  all["selp"] = select;
  all["slct"] = selectBySign;
}

} // namespace heddle::emulator
