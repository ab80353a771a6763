// Floats: fused products, roots and the approximations, and tests of classes.
#include "emulator/decode/floats.h"

namespace heddle::emulator {
namespace {

struct Reciprocal {
  template <class T> static T apply(T a) { return T(1) / a; }
};
struct Root {
  template <class T> static T apply(T a) { return std::sqrt(a); }
};
struct ReciprocalRoot {
  template <class T> static T apply(T a) { return T(1 / std::sqrt(double(a))); }
};
struct Exp2 {
  template <class T> static T apply(T a) { return std::exp2(a); }
};
struct Log2 {
  template <class T> static T apply(T a) { return std::log2(a); }
};
struct Sine {
  template <class T> static T apply(T a) { return std::sin(a); }
};
struct Cosine {
  template <class T> static T apply(T a) { return std::cos(a); }
};
struct Tanh {
  template <class T> static T apply(T a) { return std::tanh(a); }
};

template <class Op, unsigned N> void floats(Decoder &d) {
  d.takeFlags();
  d.takeRounding();
  Type type = d.takeType();
  if (!isFloat(type))
    d.fail("its types are those of floats");
  floatOp<Op, N>(d, type);
}

enum Kind : uint8_t { Finite, Infinite, Number, NotNumber, Normal, Subnormal };

template <class T> void testp(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const T *a = w.at<T>(i.operands[1]);
  uint32_t made = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    int c = std::fpclassify(a[lane]);
    bool is[] = {c != FP_NAN && c != FP_INFINITE,
                 c == FP_INFINITE,
                 c != FP_NAN,
                 c == FP_NAN,
                 c == FP_NORMAL,
                 c == FP_SUBNORMAL};
    made |= uint32_t(is[i.option]) << lane;
  }
  putMask(w, i.operands[0], made, mask);
}

void test(Decoder &d) {
  static constexpr const char *words[] = {"finite",     "infinite", "number",
                                          "notanumber", "normal",   "subnormal"};
  bool isAny = false;
  for (uint8_t k = 0; k < 6 && !isAny; ++k)
    if (d.take(words[k]))
      d.now.option = k, isAny = true;
  if (!isAny)
    d.fail("the class is missing");
  Type type = d.takeType();
  d.expect(2, 2);
  d.use(d.predicate(d.arguments()[0], true));
  d.use(d.source(d.arguments()[1], type));
  d.emit(type == Type::F32   ? testp<float>
         : type == Type::F64 ? testp<double>
                             : nullptr,
         Class::Float);
}

/// copysign d, a, b: the sign of a, the rest of b.
struct Sign {
  template <class T> static T apply(T a, T b) { return std::copysign(b, a); }
};
void copySign(Decoder &d) {
  Type type = d.takeType();
  d.useAll(type, 3);
  d.emit(type == Type::F32   ? each<Sign, float, float, float>
         : type == Type::F64 ? each<Sign, double, double, double>
                             : nullptr,
         Class::Float);
}

} // namespace

void addFloats(Opcodes &all) {
  all["fma"] = floats<Fma, 3>;
  all["rcp"] = floats<Reciprocal, 1>;
  all["sqrt"] = floats<Root, 1>;
  all["rsqrt"] = floats<ReciprocalRoot, 1>;
  all["ex2"] = floats<Exp2, 1>;
  all["lg2"] = floats<Log2, 1>;
  all["sin"] = floats<Sine, 1>;
  all["cos"] = floats<Cosine, 1>;
  all["tanh"] = floats<Tanh, 1>;
  all["testp"] = test;
  all["copysign"] = copySign;
}

} // namespace heddle::emulator
