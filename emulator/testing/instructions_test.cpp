// Instructions: each class against plain C++, on random and special values.
#include "emulator/testing/device.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace heddle::emulator {
namespace {

constexpr size_t kCount = 1024;

template <class T> std::vector<T> values(unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> made(kCount);
  for (T &each : made)
    if constexpr (std::is_floating_point_v<T>) {
      constexpr T special[] = {0,
                               T(-0.0),
                               1,
                               -1,
                               std::numeric_limits<T>::infinity(),
                               -std::numeric_limits<T>::infinity(),
                               std::numeric_limits<T>::quiet_NaN(),
                               std::numeric_limits<T>::denorm_min(),
                               std::numeric_limits<T>::max(),
                               std::numeric_limits<T>::lowest()};
      each = random() % 2 ? special[random() % 10]
                          : T(std::ldexp(double(random() % 2001) - 1000, int(random() % 40) - 20));
    } else {
      constexpr T special[] = {
          0,  1,  T(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), 31, 32,
          33, 64, T(200)};
      each = random() % 2 ? special[random() % 10] : T(random());
    }
  return made;
}

class Instructions : public Device {
protected:
  template <class T> static std::string reg(int n) {
    return (sizeof(T) == 2 ? "%h" : sizeof(T) == 4 ? "%r" : "%d") + std::to_string(n);
  }
  template <class T> static std::string load(int n, int from) {
    std::string bits = std::to_string(8 * sizeof(T)), at = "%d" + std::to_string(20 + n);
    return "mul.wide.u32 " + at + ", %r0, " + std::to_string(sizeof(T)) + ";\nadd.s64 " + at +
           ", " + at + ", %d" + std::to_string(from) + ";\n" +
           (n ? "ld.global.b" + bits + " " + reg<T>(3 + n) + ", [" + at + "];\n" : "");
  }
  /// Holds `op`, e.g. "add.s32 $d, $a, $b;", to a function of C++, with every lane and with some.
  template <class R, class A, class B, class C> void hold(std::string op, R (*expected)(A, B, C)) {
    for (auto [name, text] : {std::pair<std::string, std::string>{"$d", reg<R>(3)},
                              {"$a", reg<A>(4)},
                              {"$b", reg<B>(5)},
                              {"$c", reg<C>(6)}})
      for (size_t at; (at = op.find(name)) != op.npos;)
        op.replace(at, 2, text);
    auto a = values<A>(1);
    auto b = values<B>(2);
    auto c = values<C>(3);
    uint64_t in[] = {put(a), put(b), put(c)}, out = put(std::vector<R>(kCount));
    std::string body = load<A>(1, 1) + load<B>(2, 2) + load<C>(3, 3) + load<R>(0, 0) + "mov.b" +
                       std::to_string(8 * sizeof(R)) + " " + reg<R>(3) +
                       ", 0;\nand.b32 %r30, %r0, 7;\nsetp.eq.u32 %p1, %r30, 5;\n@%p1 bra L;\n" +
                       op + "\nL:\nst.global.b" + std::to_string(8 * sizeof(R)) + " [%d20], " +
                       reg<R>(3) + ";\n";
    ASSERT_EQ(launch(function(kernel(body), "k"), {1}, {kCount}, 0, out, in[0], in[1], in[2]), 0);
    auto got = get<R>(out, kCount);
    for (size_t i = 0; i < kCount; ++i) {
      R want = i % 8 == 5 ? R() : expected(a[i], b[i], c[i]);
      bool isSame = !memcmp(&got[i], &want, sizeof(R)) || (got[i] != got[i] && want != want);
      ASSERT_TRUE(isSame) << op << " lane " << i << ": " << +got[i] << ", not " << +want << " of "
                          << +a[i] << ", " << +b[i] << ", " << +c[i];
    }
  }
};

using u16 = uint16_t;
using i16 = int16_t;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

TEST_F(Instructions, integers) {
  hold("add.s32 $d, $a, $b;", +[](u32 a, u32 b, u32) { return a + b; });
  hold("sub.s64 $d, $a, $b;", +[](u64 a, u64 b, u64) { return a - b; });
  hold("add.s16 $d, $a, $b;", +[](u16 a, u16 b, u16) { return u16(a + b); });
  hold("mul.lo.s32 $d, $a, $b;", +[](u32 a, u32 b, u32) { return a * b; });
  hold("mul.hi.s32 $d, $a, $b;", +[](i32 a, i32 b, i32) { return i32(i64(a) * b >> 32); });
  hold(
      "mul.hi.u64 $d, $a, $b;",
      +[](u64 a, u64 b, u64) { return u64((unsigned __int128)(a)*b >> 64); });
  hold("mul.wide.s32 $d, $a, $b;", +[](i32 a, i32 b, i32) { return i64(a) * b; });
  hold("mad.lo.s32 $d, $a, $b, $c;", +[](u32 a, u32 b, u32 c) { return a * b + c; });
  hold("mad.wide.u32 $d, $a, $b, $c;", +[](u32 a, u32 b, u64 c) { return u64(a) * b + c; });
  hold(
      "div.s32 $d, $a, $b;", +[](i32 a, i32 b, i32) {
        return b == 0 ? -1 : b == -1 ? i32(0u - u32(a)) : a / b;
      });
  hold("rem.u32 $d, $a, $b;", +[](u32 a, u32 b, u32) { return b ? a % b : a; });
  hold("min.s32 $d, $a, $b;", +[](i32 a, i32 b, i32) { return std::min(a, b); });
  hold("max.u16 $d, $a, $b;", +[](u16 a, u16 b, u16) { return std::max(a, b); });
  hold("abs.s32 $d, $a;", +[](i32 a, i32, i32) { return i32(a < 0 ? 0u - u32(a) : u32(a)); });
  hold("neg.s64 $d, $a;", +[](u64 a, u64, u64) { return 0 - a; });
  hold(
      "add.cc.u32 $d, $a, $b;\naddc.u32 $d, $c, 0;",
      +[](u32 a, u32 b, u32 c) { return c + u32((u64(a) + b) >> 32); });
  hold(
      "dp4a.s32.s32 $d, $a, $b, $c;", +[](u32 a, u32 b, u32 c) {
        for (int k = 0; k < 4; ++k)
          c += u32(int(int8_t(a >> (8 * k))) * int8_t(b >> (8 * k)));
        return c;
      });
}

TEST_F(Instructions, bits) {
  hold("shl.b32 $d, $a, $b;", +[](u32 a, u32 b, u32) { return b > 31 ? 0u : a << b; });
  hold("shr.s32 $d, $a, $b;", +[](i32 a, u32 b, u32) { return a >> std::min(b, 31u); });
  hold("shr.u64 $d, $a, $b;", +[](u64 a, u32 b, u32) { return b > 63 ? u64(0) : a >> b; });
  hold("and.b32 $d, $a, $b;", +[](u32 a, u32 b, u32) { return a & b; });
  hold("xor.b64 $d, $a, $b;", +[](u64 a, u64 b, u64) { return a ^ b; });
  hold("not.b16 $d, $a;", +[](u16 a, u16, u16) { return u16(~a); });
  hold("popc.b64 $d, $a;", +[](u64 a, u64, u64) { return u32(std::popcount(a)); });
  hold("clz.b32 $d, $a;", +[](u32 a, u32, u32) { return u32(std::countl_zero(a)); });
  hold(
      "brev.b32 $d, $a;", +[](u32 a, u32, u32) {
        u32 made = 0;
        for (int k = 0; k < 32; ++k)
          made |= (a >> k & 1) << (31 - k);
        return made;
      });
  hold(
      "bfe.u32 $d, $a, $b, $c;", +[](u32 a, u32 b, u32 c) {
        u32 made = 0;
        for (u32 k = 0; k < std::min(c & 255, 32u); ++k)
          made |= (b & 255) + k < 32 ? (a >> ((b & 255) + k) & 1) << k : 0;
        return made;
      });
  hold(
      "bfe.s32 $d, $a, $b, $c;", +[](u32 a, u32 b, u32 c) {
        u32 made = 0, at = b & 255, length = c & 255;
        u32 sign = length ? a >> std::min(at + length - 1, 31u) & 1 : 0;
        for (u32 k = 0; k < 32; ++k)
          made |= (k < length && at + k < 32 ? a >> (at + k) & 1 : sign) << k;
        return made;
      });
  hold(
      "bfi.b32 $d, $a, $b, 5, 9;",
      +[](u32 a, u32 b, u32) { return (b & ~(511u << 5)) | (a & 511) << 5; });
  hold(
      "prmt.b32 $d, $a, $b, $c;", +[](u32 a, u32 b, u32 c) {
        u32 made = 0;
        for (int k = 0; k < 4; ++k) {
          u32 how = c >> (4 * k) & 15, byte = u32((u64(b) << 32 | a) >> (8 * (how & 7))) & 255;
          made |= (how & 8 ? (byte >> 7) * 255 : byte) << (8 * k);
        }
        return made;
      });
  hold("lop3.b32 $d, $a, $b, $c, 0x96;", +[](u32 a, u32 b, u32 c) { return a ^ b ^ c; });
  hold(
      "shf.l.wrap.b32 $d, $a, $b, $c;",
      +[](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) << (c & 31) >> 32); });
  hold(
      "setp.lt.s32 %p2, $a, $b;\nselp.b32 $d, $a, $c, %p2;",
      +[](i32 a, i32 b, i32 c) { return a < b ? a : c; });
}

TEST_F(Instructions, floats) {
  hold("add.rn.f32 $d, $a, $b;", +[](float a, float b, float) { return a + b; });
  hold("mul.rn.f64 $d, $a, $b;", +[](double a, double b, double) { return a * b; });
  hold("fma.rn.f32 $d, $a, $b, $c;", +[](float a, float b, float c) { return std::fma(a, b, c); });
  hold("div.rn.f32 $d, $a, $b;", +[](float a, float b, float) { return a / b; });
  hold("sqrt.rn.f32 $d, $a;", +[](float a, float, float) { return std::sqrt(a); });
  hold(
      "max.f32 $d, $a, $b;", +[](float a, float b, float) {
        return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b);
      });
  hold(
      "min.NaN.f32 $d, $a, $b;", +[](float a, float b, float) {
        return a != a || b != b ? NAN : a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b);
      });
  hold(
      "add.rn.ftz.sat.f32 $d, $a, $b;", +[](float a, float b, float) {
        auto flush = [](float x) { return std::fabs(x) < 0x1p-126f ? 0 * x : x; };
        float x = flush(a) + flush(b);
        return x > 0 ? std::min(x, 1.0f) : 0.0f;
      });
  hold(
      "setp.gtu.f32 %p2, $a, $b;\nselp.f32 $d, $a, $c, %p2;",
      +[](float a, float b, float c) { return !(a <= b) ? a : c; });
  hold(
      "add.rz.f32 $d, $a, $b;", +[](float a, float b, float) {
        float near = a + b;
        double sum = double(a) + b, part = sum - a; // and what is lost of it
        double over = (double(near) - sum) - ((a - (sum - part)) + (b - part));
        return (near > 0 && over > 0) || (near < 0 && over < 0) ? std::nextafter(near, 0.0f) : near;
      });
}

TEST_F(Instructions, halves) {
  hold(
      "add.f16 $d, $a, $b;\nand.b16 $d, $d, 0x7fff;", +[](u16 a, u16 b, u16) {
        auto x = std::bit_cast<_Float16>(a), y = std::bit_cast<_Float16>(b);
        auto made = _Float16(float(x) + float(y));
        return u16((made != made ? 0x7fff : std::bit_cast<u16>(made)) & 0x7fff);
      });
  hold(
      "fma.rn.f16 $d, $a, $b, $c;", +[](u16 a, u16 b, u16 c) {
        long double x = std::bit_cast<_Float16>(a), y = std::bit_cast<_Float16>(b),
                    z = std::bit_cast<_Float16>(c); // 64 bits hold nearly all sums
        auto made = _Float16(x * y + z);
        return made != made ? u16(0x7fff) : std::bit_cast<u16>(made);
      });
  hold(
      "cvt.rn.bf16.f32 $d, $a;", +[](float a, float, float) {
        u32 u = std::bit_cast<u32>(a);
        return u16(a != a ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16);
      });
  hold(
      "cvt.rn.f16x2.f32 $d, $a, $b;", +[](float a, float b, float) {
        auto bits = [](float x) { return u32(x != x ? 0x7fff : std::bit_cast<u16>(_Float16(x))); };
        return bits(a) << 16 | bits(b);
      });
}

TEST_F(Instructions, conversions) {
  hold("cvt.s64.s32 $d, $a;", +[](i32 a, i32, i32) { return i64(a); });
  hold("cvt.u64.u32 $d, $a;", +[](u32 a, u32, u32) { return u64(a); });
  hold("cvt.s32.s8 $d, $a;", +[](u32 a, u32, u32) { return i32(int8_t(a)); });
  hold("cvt.sat.u8.s32 $d, $a;", +[](i32 a, i32, i32) { return u32(std::clamp(a, 0, 255)); });
  hold("cvt.rn.f32.s64 $d, $a;", +[](i64 a, i64, i64) { return float(a); });
  hold(
      "cvt.rzi.s32.f32 $d, $a;", +[](float a, float, float) {
        return a != a ? 0 : a >= 0x1p31f ? INT32_MAX : a <= -0x1p31f ? INT32_MIN : i32(a);
      });
  hold("cvt.rmi.f32.f32 $d, $a;", +[](float a, float, float) { return std::floor(a); });
  hold("cvt.rni.f32.f32 $d, $a;", +[](float a, float, float) { return std::rint(a); });
  hold("cvt.rn.f32.f64 $d, $a;", +[](double a, double, double) { return float(a); });
  hold(
      "mov.b64 {%r20, %r21}, $a;\nmov.b64 $d, {%r21, %r20};",
      +[](u64 a, u64, u64) { return a >> 32 | a << 32; });
}

TEST_F(Instructions, shuffles_and_votes) {
  auto run = [&](const std::string &op) {
    uint64_t out = put(std::vector<u32>(32));
    std::string body = "mul.lo.u32 %r1, %r0, 3;\nsetp.gt.u32 %p1, %r0, 20;\n" + op +
                       "\nmul.wide.u32 %d9, %r0, 4;\nadd.s64 %d9, %d9, %d0;\n"
                       "st.global.u32 [%d9], %r2;\n";
    EXPECT_EQ(launch(function(kernel(body), "k"), {1}, {32}, 0, out, out, out, out), 0);
    return get<u32>(out, 32);
  };
  auto down = run("shfl.sync.down.b32 %r2, %r1, 4, 31, -1;");
  auto cross = run("shfl.sync.bfly.b32 %r2|%p2, %r1, 5, 31, -1;");
  auto ballot = run("vote.sync.ballot.b32 %r2, %p1, -1;");
  auto sum = run("redux.sync.add.u32 %r2, %r1, -1;");
  auto match = run("and.b32 %r1, %r1, 1;\nmatch.any.sync.b32 %r2, %r1, -1;");
  for (u32 i = 0; i < 32; ++i) {
    EXPECT_EQ(down[i], 3 * (i + 4 < 32 ? i + 4 : i));
    EXPECT_EQ(cross[i], 3 * (i ^ 5));
    EXPECT_EQ(ballot[i], 0xffe00000u);
    EXPECT_EQ(sum[i], 3u * 496);
    EXPECT_EQ(match[i], i % 2 ? 0xaaaaaaaau : 0x55555555u);
  }
}

TEST_F(Instructions, atomics) {
  uint64_t out = put(std::vector<u32>{5, 0, 1000, 0});
  std::string body = "red.global.add.u32 [%d0], %r0;\natom.global.max.u32 %r1, [%d0+4], %r0;\n"
                     "atom.global.inc.u32 %r2, [%d0+8], 2000;\nmov.b32 %r3, 0f3F800000;\n"
                     "atom.add.f32 %r4, [%d0+12], %r3;\n";
  ASSERT_EQ(launch(function(kernel(body), "k"), {3}, {64}, 0, out, out, out, out), 0);
  EXPECT_EQ(get<u32>(out, 4),
            (std::vector<u32>{5 + 3 * 2016, 63, 1192, std::bit_cast<u32>(192.0f)}));
}

TEST_F(Instructions, divergence_and_calls) {
  std::string before = ".func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 %r<3>;\n"
                       ".reg .pred %p<2>;\nld.param.b32 %r1, [x];\nsetp.gt.u32 %p1, %r1, 40;\n"
                       "@%p1 bra BIG;\nadd.s32 %r1, %r1, %r1;\nst.param.b32 [r], %r1;\nret;\n"
                       "BIG:\nst.param.b32 [r], 7;\nret;\n}\n";
  // Each lane goes round as often as its number says, nests a branch, and some leave early.
  std::string body =
      "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nsetp.eq.u32 %p3, %r0, 9;\n@%p3 ret;\n"
      "LOOP:\nsetp.ge.u32 %p1, %r2, %r0;\n@%p1 bra DONE;\nand.b32 %r3, %r2, 1;\n"
      "setp.eq.u32 %p2, %r3, 0;\n@%p2 bra EVEN;\nadd.s32 %r1, %r1, 10;\nbra NEXT;\n"
      "EVEN:\nadd.s32 %r1, %r1, 1;\nNEXT:\nadd.s32 %r2, %r2, 1;\nbra LOOP;\nDONE:\n"
      "{\n.param .b32 a;\nst.param.b32 [a], %r1;\n.param .b32 b;\n"
      "call.uni (b), twice, (a);\nld.param.b32 %r1, [b];\n}\n"
      "mul.wide.u32 %d9, %r0, 4;\nadd.s64 %d9, %d9, %d0;\nst.global.u32 [%d9], %r1;\n";
  uint64_t out = put(std::vector<u32>(64, 77));
  ASSERT_EQ(launch(function(kernel(body, before), "k"), {1}, {64}, 0, out, out, out, out), 0);
  auto got = get<u32>(out, 64);
  for (u32 i = 0; i < 64; ++i) {
    u32 sum = i / 2 * 10 + (i + 1) / 2;
    EXPECT_EQ(got[i], i == 9 ? 77 : sum > 40 ? 7 : 2 * sum) << i;
  }
}

struct Form {
  const char *op;
  unsigned m, k, bits;
  bool isHalf; // accumulators
};

class Mma : public Instructions, public testing::WithParamInterface<Form> {};

/// Number of an element: small, so that all sums are exact.
int elementAt(unsigned row, unsigned column) { return int((row * 7 + column * 3) % 7) - 3; }

uint64_t encoded(int value, const Form &form) {
  if (form.bits == 8)
    return uint8_t(value);
  if (form.bits == 64)
    return std::bit_cast<uint64_t>(double(value));
  if (form.bits == 32)
    return std::bit_cast<uint32_t>(float(value));
  return strstr(form.op, "bf16") ? std::bit_cast<uint32_t>(float(value)) >> 16
                                 : std::bit_cast<uint16_t>(_Float16(value));
}

/// Fragments are written by the tables of the PTX manual, form by form.
TEST_P(Mma, equals_a_loop) {
  Form form = GetParam();
  unsigned bits = std::max(form.bits, 32u), e = bits / form.bits, bytes = bits / 8;
  unsigned inA = form.m * form.k / 32 / e, inB = 8 * form.k / 32 / e;
  unsigned inC = form.m * 8 / 32 / (form.isHalf ? 2 : 1);
  std::vector<uint8_t> a(32 * inA * bytes), b(32 * inB * bytes);
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    auto write = [&](std::vector<uint8_t> &to, unsigned count, unsigned r, unsigned k, int value) {
      uint64_t code = encoded(value, form);
      memcpy(&to[(lane * count + r) * bytes + k * form.bits / 8], &code, form.bits / 8);
    };
    for (unsigned k = 0; k < e; ++k) {
      for (unsigned r = 0; r < inA; ++r) {
        unsigned row = form.m == 16 && r % 2 ? g + 8 : g;
        unsigned step = form.m == 16 ? r / 2 : r;
        write(a, inA, r, k, elementAt(row, t * e + k + step * 4 * e));
      }
      for (unsigned r = 0; r < inB; ++r)
        write(b, inB, r, k, elementAt(t * e + k + r * 4 * e, g + 1));
    }
  }
  bool isWide = form.bits == 64;
  unsigned outBytes = isWide ? 8 : 4;
  uint64_t x = put(a), y = put(b), out = put(std::vector<uint8_t>(32 * inC * outBytes));
  auto list = [&](const std::string &base, unsigned from, unsigned count) {
    std::string text;
    for (unsigned i = 0; i < count; ++i)
      text += (i ? ", " : "{") + base + std::to_string(from + i);
    return text + "}";
  };
  std::string body = ".reg .b64 %x<40>;\n.reg .b32 %y<40>;\n.reg .f64 %z<9>;\n";
  std::string base = isWide ? "%x" : "%y", word = isWide ? "b64" : "b32";
  auto each = [&](const char *op, unsigned from, unsigned count, const char *pointer) {
    body += "mul.wide.u32 %d9, %r0, " + std::to_string(count * outBytes) + ";\nadd.s64 %d9, %d9, " +
            pointer + ";\n";
    for (unsigned i = 0; i < count; ++i) {
      std::string reg = base + std::to_string(from + i);
      std::string at = "[%d9+" + std::to_string(i * outBytes) + "]";
      body += std::string(op) + ".global." + word + " " +
              (*op == 'l' ? reg + ", " + at : at + ", " + reg) + ";\n";
    }
  };
  each("ld", 0, inA, "%d1");
  each("ld", 10, inB, "%d2");
  each("ld", 20, inC, "%d0");
  body += std::string(form.op) + " " + list(base, 20, inC) + ", " + list(base, 0, inA) + ", " +
          list(base, 10, inB) + ", " + list(base, 20, inC) + ";\n";
  each("st", 20, inC, "%d0");
  std::string text = changed(kernel(body), "sm_80", "sm_90");
  ASSERT_EQ(launch(function(text, "k"), {1}, {32}, 0, out, x, y, out), 0);
  auto got = get<uint8_t>(out, 32 * inC * outBytes);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned r = 0; r < form.m / 4; ++r) {
      unsigned row = lane / 4 + 8 * (r / 2), column = 2 * (lane % 4) + r % 2;
      double want = 0, have;
      for (unsigned k = 0; k < form.k; ++k)
        want += elementAt(row, k) * elementAt(k, column + 1);
      const uint8_t *at = &got[(lane * (form.m / 4) + r) * (form.isHalf ? 2 : outBytes)];
      if (form.isHalf)
        have = *reinterpret_cast<const _Float16 *>(at);
      else if (form.bits == 8)
        have = *reinterpret_cast<const int32_t *>(at);
      else
        have =
            isWide ? *reinterpret_cast<const double *>(at) : *reinterpret_cast<const float *>(at);
      ASSERT_EQ(have, want) << row << ", " << column;
    }
}

#define OP(TEXT) "mma.sync.aligned." TEXT
INSTANTIATE_TEST_SUITE_P(
    Forms, Mma,
    testing::Values(Form{OP("m16n8k8.row.col.f32.f16.f16.f32"), 16, 8, 16, false},
                    Form{OP("m16n8k16.row.col.f32.f16.f16.f32"), 16, 16, 16, false},
                    Form{OP("m16n8k8.row.col.f16.f16.f16.f16"), 16, 8, 16, true},
                    Form{OP("m16n8k16.row.col.f16.f16.f16.f16"), 16, 16, 16, true},
                    Form{OP("m16n8k8.row.col.f32.bf16.bf16.f32"), 16, 8, 16, false},
                    Form{OP("m16n8k16.row.col.f32.bf16.bf16.f32"), 16, 16, 16, false},
                    Form{OP("m16n8k4.row.col.f32.tf32.tf32.f32"), 16, 4, 32, false},
                    Form{OP("m16n8k8.row.col.f32.tf32.tf32.f32"), 16, 8, 32, false},
                    Form{OP("m16n8k16.row.col.s32.s8.s8.s32"), 16, 16, 8, false},
                    Form{OP("m16n8k32.row.col.satfinite.s32.s8.s8.s32"), 16, 32, 8, false},
                    Form{OP("m8n8k4.row.col.f64.f64.f64.f64"), 8, 4, 64, false}));

} // namespace
} // namespace heddle::emulator
