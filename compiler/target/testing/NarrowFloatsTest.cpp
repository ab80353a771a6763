// NarrowFloatsTest: each narrow code is decoded, and numbers are rounded to the nearest code.

#include "compiler/target/testing/Programs.h"

#include "llvm/ADT/APFloat.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace heddle;
using namespace heddle::testing;

namespace {

struct Kind {
  const char *type;
  int bits;
  const llvm::fltSemantics &(*semantics)();
};

const Kind kinds[] = {
    {"f16", 16, llvm::APFloat::IEEEhalf},
    {"bf16", 16, llvm::APFloat::BFloat},
    {"f8E5M2", 8, llvm::APFloat::Float8E5M2},
    {"f8E4M3FN", 8, llvm::APFloat::Float8E4M3FN},
    {"f8E4M3FNUZ", 8, llvm::APFloat::Float8E4M3FNUZ},
    {"f8E5M2FNUZ", 8, llvm::APFloat::Float8E5M2FNUZ},
};
const char *const targets[] = {"host", "x86-64-v2"};

float decoded(const Kind &kind, uint32_t code) {
  llvm::APFloat value(kind.semantics(), llvm::APInt(kind.bits, code));
  bool lost;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return value.convertToFloat();
}

uint32_t encoded(const Kind &kind, float x) {
  llvm::APFloat value(x);
  bool lost;
  value.convert(kind.semantics(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return value.bitcastToAPInt().getZExtValue();
}

std::string integers(const Kind &kind) { return "vector<8xi" + std::to_string(kind.bits) + ">"; }
std::string floats(const Kind &kind) { return std::string("vector<8x") + kind.type + ">"; }

class Narrow : public ::testing::TestWithParam<std::tuple<Kind, const char *>> {};

TEST_P(Narrow, EveryCodeIsDecoded) {
  auto [kind, name] = GetParam();
  auto kernel =
      Kernel::compile("  %c = llvm.load %x {alignment = 1 : i64} : !llvm.ptr -> " + integers(kind) +
                          "\n  %n = arith.bitcast %c : " + integers(kind) + " to " + floats(kind) +
                          "\n  %r = arith.extf %n : " + floats(kind) +
                          " to vector<8xf32>\n"
                          "  llvm.store %r, %y {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr\n",
                      llvm::cantFail(cpu::targetFor(name)));
  ASSERT_TRUE(kernel);
  for (uint32_t first = 0; first < (1u << kind.bits); first += 8) {
    uint8_t codes[16];
    for (uint32_t i = 0; i < 8; ++i)
      if (kind.bits == 8)
        codes[i] = first + i;
      else
        reinterpret_cast<uint16_t *>(codes)[i] = first + i;
    float got[8];
    (*kernel)(codes, got);
    for (uint32_t i = 0; i < 8; ++i) {
      float wanted = decoded(kind, first + i);
      if (std::isnan(wanted))
        ASSERT_TRUE(std::isnan(got[i])) << kind.type << " code " << first + i;
      else
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(wanted))
            << kind.type << " code " << first + i;
    }
  }
}

TEST_P(Narrow, NumbersAreRoundedToTheNearest) {
  auto [kind, name] = GetParam();
  auto kernel = Kernel::compile(
      "  %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>\n"
      "  %n = arith.truncf %v : vector<8xf32> to " +
          floats(kind) + "\n  %c = arith.bitcast %n : " + floats(kind) + " to " + integers(kind) +
          "\n  llvm.store %c, %y {alignment = 1 : i64} : " + integers(kind) + ", !llvm.ptr\n",
      llvm::cantFail(cpu::targetFor(name)));
  ASSERT_TRUE(kernel);
  std::vector<float> xs = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 3.4e38f};
  std::mt19937 random(3);
  for (uint32_t code = 0; code < (1u << kind.bits); code += kind.bits == 8 ? 1 : 7) {
    float x = decoded(kind, code);
    for (float near : {x, std::nextafter(x, 1e38f), std::nextafter(x, -1e38f)})
      xs.push_back(near);
    float next = decoded(kind, (code + 1) & ((1u << kind.bits) - 1)), middle = x + (next - x) / 2;
    for (float near : {middle, std::nextafter(middle, 1e38f), std::nextafter(middle, -1e38f)})
      xs.push_back(near);
  }
  for (int i = 0; i < 20000; ++i)
    xs.push_back(std::bit_cast<float>(uint32_t(random())));
  while (xs.size() % 8)
    xs.push_back(0);
  for (size_t first = 0; first < xs.size(); first += 8) {
    uint8_t codes[16];
    (*kernel)(&xs[first], codes);
    for (uint32_t i = 0; i < 8; ++i) {
      uint32_t got = kind.bits == 8 ? codes[i] : reinterpret_cast<uint16_t *>(codes)[i];
      uint32_t wanted = encoded(kind, xs[first + i]);
      if (std::isnan(decoded(kind, wanted)))
        ASSERT_TRUE(std::isnan(decoded(kind, got))) << kind.type << " of " << xs[first + i];
      else
        ASSERT_EQ(got, wanted) << kind.type << " of " << std::hexfloat << xs[first + i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Narrow,
                         ::testing::Combine(::testing::ValuesIn(kinds),
                                            ::testing::ValuesIn(targets)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).type) +
                                  (std::get<1>(info.param)[0] == 'h' ? "OnHost" : "WithoutF16c");
                         });

TEST(NarrowArithmetic, IsDoneInF32) {
  for (const char *type : {"f16", "bf16"})
    for (const char *name : targets) {
      std::string vector = std::string("vector<4x") + type + ">";
      auto kernel = Kernel::compile(
          "  %a = llvm.load %x {alignment = 2 : i64} : !llvm.ptr -> " + vector +
              "\n  %b = arith.mulf %a, %a : " + vector + "\n  %c = math.exp %b : " + vector +
              "\n  %m = arith.cmpf ogt, %c, %b : " + vector +
              "\n  %s = arith.select %m, %c, %a : " + "vector<4xi1>, " + vector +
              "\n  llvm.store %s, %y {alignment = 2 : i64} : " + vector + ", !llvm.ptr\n",
          llvm::cantFail(cpu::targetFor(name)));
      ASSERT_TRUE(kernel);
      const Kind &kind = kinds[type[0] == 'b'];
      uint16_t x[4], y[4];
      float values[4] = {0.5f, -1.0f, 0.0f, 1.5f};
      for (int i = 0; i < 4; ++i)
        x[i] = encoded(kind, values[i]);
      (*kernel)(x, y);
      for (int i = 0; i < 4; ++i) {
        float square = decoded(kind, encoded(kind, values[i] * values[i]));
        EXPECT_EQ(y[i], encoded(kind, std::exp(square))) << type << ' ' << name << ' ' << i;
      }
    }
}

} // namespace
