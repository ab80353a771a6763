// MathTest: every expansion against libm in f64, over special numbers, random bit patterns and the
// ranges where models live; on AVX-512, AVX2 and SSE code.

#include "compiler/target/testing/Programs.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace heddle;
using namespace heddle::testing;

namespace {

constexpr int lanes = 16;
constexpr float infinity = std::numeric_limits<float>::infinity();

struct Function {
  const char *op;
  double (*exact)(double);
  double ulps;     // allowed distance in units in the last place of the exact result
  double absolute; // or this distance, whichever is larger
};

// Results below the normal numbers may be 0: see FloatMath::exp.
bool isClose(float got, double exact, const Function &function) {
  float wanted = static_cast<float>(exact);
  if (std::isnan(wanted) || std::isnan(got))
    return std::isnan(wanted) && std::isnan(got);
  if (std::isinf(wanted) || std::isinf(got))
    return wanted == got || (std::abs(exact) > 3.402e38 && std::abs(got) > 3.402e38f);
  double unit = std::max(std::ldexp(1.0, std::ilogb(exact == 0 ? 1e-40 : exact) - 23), 1e-45);
  double distance = std::abs(got - exact);
  return distance <= function.ulps * unit || distance <= function.absolute ||
         (std::abs(exact) < 1.2e-38 && distance <= 1.2e-38);
}

std::vector<float> samples() {
  std::vector<float> xs = {0.0f,           -0.0f,      infinity, -infinity,      std::nanf(""),
                           1e-45f,         -1e-45f,    1e-40f,   1.1754944e-38f, 3.4028235e38f,
                           -3.4028235e38f, 1.0f,       -1.0f,    0.5f,           -0.5f,
                           2.0f,           -2.0f,      88.7228f, 88.723f,        89.5f,
                           -87.33f,        -87.34f,    -104.0f,  0.49999997f,    2.5f,
                           -2.5f,          8388609.0f, 1e6f,     1.00001e6f};
  std::mt19937 random(7);
  for (int i = 0; i < 60000; ++i)
    xs.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (float range : {1e-3f, 1.0f, 2.0f, 10.0f, 100.0f, 1e4f}) {
    std::uniform_real_distribution<float> uniform(-range, range);
    for (int i = 0; i < 20000; ++i)
      xs.push_back(uniform(random));
  }
  for (int i = 1; i < 1000; ++i) // near the zeros of sin and cos
    xs.push_back(static_cast<float>(i * 1.5707963267948966));
  while (xs.size() % lanes)
    xs.push_back(0);
  return xs;
}

std::string vectorBody(const std::string &op) {
  return "  %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>\n"
         "  %r = math." +
         op +
         " %v : vector<16xf32>\n"
         "  llvm.store %r, %y {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr\n";
}

void check(const Function &function, const cpu::Target &target) {
  auto kernel = Kernel::compile(vectorBody(function.op), target);
  ASSERT_TRUE(kernel);
  static const std::vector<float> xs = samples();
  std::vector<float> ys(xs.size());
  for (size_t i = 0; i < xs.size(); i += lanes)
    (*kernel)(&xs[i], &ys[i]);
  int shown = 0;
  for (size_t i = 0; i < xs.size() && shown < 5; ++i) {
    double exact = function.exact(xs[i]);
    if (!isClose(ys[i], exact, function)) {
      ADD_FAILURE() << function.op << '(' << std::hexfloat << xs[i] << std::defaultfloat << " = "
                    << xs[i] << ") = " << ys[i] << ", exact " << exact << " (" << target.cpu << ')';
      ++shown;
    }
    if (xs[i] == 0 && exact == 0)
      EXPECT_EQ(std::signbit(ys[i]), std::signbit(exact)) << function.op << " of " << xs[i];
  }
}

const Function functions[] = {
    {"exp", std::exp, 2, 0},      {"exp2", std::exp2, 2, 0},
    {"expm1", std::expm1, 4, 0},  {"log", std::log, 2, 0},
    {"log1p", std::log1p, 4, 0},  {"log2", std::log2, 4, 0},
    {"log10", std::log10, 4, 0},  {"tanh", std::tanh, 5, 0},
    {"erf", std::erf, 5, 2e-7},   {"sin", std::sin, 2, 0},
    {"cos", std::cos, 2, 0},      {"tan", std::tan, 4, 0},
    {"atan", std::atan, 3, 0},    {"asin", std::asin, 4, 0},
    {"acos", std::acos, 4, 0},    {"sinh", std::sinh, 4, 0},
    {"cosh", std::cosh, 4, 0},    {"asinh", std::asinh, 4, 0},
    {"acosh", std::acosh, 6, 0},  {"atanh", std::atanh, 6, 0},
    {"sqrt", std::sqrt, 0.51, 0}, {"round", std::round, 0, 0},
    {"floor", std::floor, 0, 0},  {"cbrt", std::cbrt, 1.5, 0},
    {"trunc", std::trunc, 0, 0},  {"roundeven", std::rint, 0, 0},
    {"ceil", std::ceil, 0, 0},    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 2, 0},
};

class Math : public ::testing::TestWithParam<Function> {};

TEST_P(Math, AgreesWithLibmOnTheHost) { check(GetParam(), host()); }

TEST_P(Math, AgreesWithLibmWithoutFma) {
  Function function = GetParam();
  // Two roundings in place of one, in each step of a polynomial.
  if (function.ulps > 1)
    function.ulps += 2;
  check(function, llvm::cantFail(cpu::targetFor("x86-64-v2")));
}

INSTANTIATE_TEST_SUITE_P(All, Math, ::testing::ValuesIn(functions),
                         [](const auto &info) { return std::string(info.param.op); });

using Pair = std::pair<float, float>;

void checkPairs(const std::string &op, double (*exact)(double, double), double ulps,
                const std::vector<Pair> &pairs) {
  auto kernel =
      Kernel::compile("  %two = llvm.getelementptr %x[16] : (!llvm.ptr) -> !llvm.ptr, f32\n"
                      "  %a = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>\n"
                      "  %b = llvm.load %two {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>\n"
                      "  %r = " +
                          op +
                          " %a, %b : vector<16xf32>\n"
                          "  llvm.store %r, %y {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr\n",
                      host());
  ASSERT_TRUE(kernel);
  int shown = 0;
  for (size_t i = 0; i + lanes <= pairs.size() && shown < 5; i += lanes) {
    float in[2 * lanes], out[lanes];
    for (int lane = 0; lane < lanes; ++lane) {
      in[lane] = pairs[i + lane].first;
      in[lanes + lane] = pairs[i + lane].second;
    }
    (*kernel)(in, out);
    for (int lane = 0; lane < lanes; ++lane) {
      auto [a, b] = pairs[i + lane];
      if (isClose(out[lane], exact(a, b), {op.c_str(), nullptr, ulps, 0}))
        continue;
      ADD_FAILURE() << op << '(' << a << ", " << b << ") = " << out[lane] << ", exact "
                    << exact(a, b);
      ++shown;
    }
  }
}

std::vector<Pair> pairSamples() {
  const float special[] = {0.0f,      -0.0f,         1.0f,   -1.0f, 2.0f, -2.0f,
                           3.0f,      -3.0f,         0.5f,   -0.5f, 2.5f, infinity,
                           -infinity, std::nanf(""), 1e-40f, 3e38f, 1e10f};
  std::vector<Pair> pairs;
  for (float a : special)
    for (float b : special)
      pairs.push_back({a, b});
  std::mt19937 random(11);
  std::uniform_real_distribution<float> small(-10, 10), positive(0, 50);
  for (int i = 0; i < 20000; ++i) {
    pairs.push_back({positive(random), small(random)});
    pairs.push_back({small(random), std::round(small(random))});
    pairs.push_back({std::bit_cast<float>(uint32_t(random())), small(random)});
    pairs.push_back(
        {std::bit_cast<float>(uint32_t(random())), std::bit_cast<float>(uint32_t(random()))});
  }
  while (pairs.size() % lanes)
    pairs.push_back({1, 1});
  return pairs;
}

TEST(MathOfTwo, PowerAgreesWithLibm) { checkPairs("math.powf", std::pow, 2, pairSamples()); }
TEST(MathOfTwo, Atan2AgreesWithLibm) { checkPairs("math.atan2", std::atan2, 4, pairSamples()); }
TEST(MathOfTwo, RemaindersAreExact) { checkPairs("arith.remf", std::fmod, 0, pairSamples()); }

TEST(MathForms, ScalarsAndShortVectorsAndTwoDimensions) {
  for (const char *type : {"f32", "vector<1xf32>", "vector<3xf32>", "vector<2x4xf32>"}) {
    bool flat = llvm::StringRef(type).count('x') < 2;
    std::string kind = type, load = kind, shape;
    if (!flat) {
      load = "vector<8xf32>";
      shape = "  %w = vector.shape_cast %v : vector<8xf32> to vector<2x4xf32>\n"
              "  %s = math.sin %w : vector<2x4xf32>\n  %e = math.exp %s : vector<2x4xf32>\n"
              "  %r = vector.shape_cast %e : vector<2x4xf32> to vector<8xf32>\n";
    } else {
      shape = "  %s = math.sin %v : " + kind + "\n  %r = math.exp %s : " + kind + "\n";
    }
    auto kernel = Kernel::compile(
        "  %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> " + load + "\n" + shape +
            "  llvm.store %r, %y {alignment = 4 : i64} : " + load + ", !llvm.ptr\n",
        host());
    ASSERT_TRUE(kernel) << type;
    float x[8] = {0.3f, 2e6f, -1.5f, 4, 5, 6, 7, 1e30f}, y[8] = {};
    (*kernel)(x, y);
    EXPECT_NEAR(y[0], std::exp(std::sin(0.3)), 1e-6) << type;
    if (!flat) {
      EXPECT_NEAR(y[1], std::exp(std::sin(2e6)), 1e-6) << type;
      EXPECT_NEAR(y[7], std::exp(std::sin(double(1e30f))), 1e-6) << type;
    }
  }
}

/// IEEE 754's maximum and minimum, of any of two variables or a constant.
float extreme(bool isMax, float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  if (a == b)
    return std::signbit(a) == isMax ? b : a;
  return isMax == (a > b) ? a : b;
}

TEST(MathForms, ExtremesKeepNanAndOrderZeros) {
  const float numbers[] = {0.0f, -0.0f, 1, -1, NAN, infinity, -infinity, 6};
  std::vector<std::string> seconds = {"arith.extf %b : vector<8xf16> to vector<8xf32>"};
  for (const char *c : {"0.0", "-0.0", "6.0", "0x7FC00000"})
    seconds.push_back(std::string("arith.constant dense<") + c + "> : vector<8xf32>");
  for (const std::string name : {"host", "x86-64-v3"})
    for (int form = 0; form < 4; ++form)
      for (size_t s = 0; s < seconds.size(); ++s) {
        bool isMax = form & 1, keepsZeros = form & 2;
        // f16 on both ends is what LLVM would narrow to.
        auto kernel = Kernel::compile(
            "  %next = llvm.getelementptr %x[16] : (!llvm.ptr) -> !llvm.ptr, i8\n"
            "  %a = llvm.load %x {alignment = 2 : i64} : !llvm.ptr -> vector<8xf16>\n"
            "  %b = llvm.load %next {alignment = 2 : i64} : !llvm.ptr -> vector<8xf16>\n"
            "  %p = arith.extf %a : vector<8xf16> to vector<8xf32>\n"
            "  %q = " +
                seconds[s] + "\n  %m = arith." + (isMax ? "maximumf" : "minimumf") + " %p, %q " +
                (keepsZeros ? "" : "fastmath<nsz> ") +
                ": vector<8xf32>\n"
                "  %r = arith.truncf %m : vector<8xf32> to vector<8xf16>\n"
                "  %e = arith.extf %r : vector<8xf16> to vector<8xf32>\n"
                "  llvm.store %e, %y {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr\n",
            llvm::cantFail(cpu::targetFor(name)));
        ASSERT_TRUE(kernel);
        for (int shift = 0; shift < 8; ++shift) {
          _Float16 in[16];
          float out[8];
          for (int i = 0; i < 8; ++i) {
            in[i] = static_cast<_Float16>(numbers[i]);
            in[8 + i] = static_cast<_Float16>(numbers[(i + shift) % 8]);
          }
          (*kernel)(in, out);
          const float constants[] = {0, 0.0f, -0.0f, 6, NAN};
          for (int i = 0; i < 8; ++i) {
            float b = s == 0 ? static_cast<float>(in[8 + i]) : constants[s];
            float wanted = extreme(isMax, numbers[i], b);
            bool isRight = std::isnan(wanted) ? std::isnan(out[i]) : out[i] == wanted;
            if (keepsZeros)
              isRight &= std::signbit(out[i]) == std::signbit(wanted) || std::isnan(wanted);
            EXPECT_TRUE(isRight) << (isMax ? "max " : "min ") << numbers[i] << ' ' << b << " gave "
                                 << out[i];
          }
        }
      }
}

TEST(MathForms, DoublesGoToLibm) {
  auto kernel = Kernel::compile("  %v = llvm.load %x : !llvm.ptr -> vector<4xf64>\n"
                                "  %r = math.exp %v : vector<4xf64>\n"
                                "  %p = math.powf %r, %v : vector<4xf64>\n"
                                "  llvm.store %p, %y : vector<4xf64>, !llvm.ptr\n",
                                host());
  ASSERT_TRUE(kernel);
  alignas(32) double x[4] = {0.5, -1, 2, 3}, y[4];
  (*kernel)(x, y);
  for (int i = 0; i < 4; ++i)
    EXPECT_DOUBLE_EQ(y[i], std::pow(std::exp(x[i]), x[i]));
}

TEST(MathForms, PowersThatAreRoots) {
  const float numbers[] = {0, -0.0f, 4, -4, 1e-30f, 3e38f, infinity, -infinity};
  for (const char *exponent : {"0.5", "-0.5", "0.75"}) {
    auto kernel = Kernel::compile(
        "  %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>\n"
        "  %c = arith.constant dense<" +
            std::string(exponent) +
            "> : vector<8xf32>\n"
            "  %r = math.powf %v, %c : vector<8xf32>\n"
            "  llvm.store %r, %y {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr\n",
        host());
    ASSERT_TRUE(kernel);
    float out[8];
    (*kernel)(numbers, out);
    for (int i = 0; i < 8; ++i)
      EXPECT_TRUE(
          isClose(out[i], std::pow(numbers[i], std::atof(exponent)), {"pow", nullptr, 4, 0}))
          << numbers[i] << " ^ " << exponent << " gave " << out[i];
  }
}

TEST(MathForms, IntegerPowers) {
  auto kernel = Kernel::compile("  %v = llvm.load %x : !llvm.ptr -> vector<4xi64>\n"
                                "  %r = math.ipowi %v, %v : vector<4xi64>\n"
                                "  llvm.store %r, %y : vector<4xi64>, !llvm.ptr\n",
                                host());
  ASSERT_TRUE(kernel);
  alignas(32) int64_t x[4] = {0, 3, -3, 7}, y[4];
  (*kernel)(x, y);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 27);
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[3], 823543);
}

/// Quotients that are rounded to whole numbers are those of divisions, next to halves above all.
TEST(MathForms, QuotientsInStepsAreExact) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> exponent(-40, 40), any(-300, 300);
  for (int step = 0; step < 24; ++step) {
    float s = step == 0 ? 1.0f : step == 1 ? 0x1.fffffep-7f : std::exp2(exponent(random));
    auto bits = std::to_string(std::bit_cast<uint32_t>(s));
    auto kernel = Kernel::compile(
        "  %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>\n"
        "  %b = arith.constant dense<" +
            bits +
            "> : vector<16xi32>\n"
            "  %c = arith.bitcast %b : vector<16xi32> to vector<16xf32>\n"
            "  %r = arith.divf %v, %c {program.steps} : vector<16xf32>\n"
            "  llvm.store %r, %y {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr\n",
        host());
    ASSERT_TRUE(kernel);
    std::vector<float> xs = {std::nanf(""), 0};
    for (int k = -260; k <= 260; ++k) {
      float half = (static_cast<float>(k) + 0.5f) * s, near = half;
      for (int i = 0; i < 3; ++i)
        xs.push_back(near = std::nextafter(near, -infinity));
      for (float x = half; xs.size() % 7; x = std::nextafter(x, infinity))
        xs.push_back(x);
      xs.push_back(any(random) * s);
    }
    xs.resize(xs.size() / lanes * lanes);
    float out[lanes];
    for (size_t i = 0; i < xs.size(); i += lanes) {
      (*kernel)(&xs[i], out);
      for (int lane = 0; lane < lanes; ++lane)
        EXPECT_TRUE(out[lane] == xs[i + lane] / s || std::isnan(xs[i + lane]))
            << std::hexfloat << xs[i + lane] << " / " << s << " gave " << out[lane];
    }
  }
}

/// A conversion has the lowest integer where it has none, and rounds where it is asked to.
TEST(MathForms, FloatsBecomeIntegers) {
  float x[16] = {0.5f,  1.5f,  2.5f,  -0.5f, -1.5f,    -2.5f,     2.4999998f,    3e9f,
                 -3e9f, 1e30f, -0.0f, 7.99f, infinity, -infinity, std::nanf(""), 2147483520.0f};
  constexpr int32_t lowest = std::numeric_limits<int32_t>::min();
  for (bool rounds : {false, true})
    for (int width : {3, 4, 8, 16}) {
      std::string floats = "vector<" + std::to_string(width) + "xf32>",
                  integers = "vector<" + std::to_string(width) + "xi32>",
                  flags = "vector<" + std::to_string(width) + "xi1>";
      auto kernel = Kernel::compile(
          "  %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> " + floats + "\n" +
              (rounds ? "  %w = math.roundeven %v : " + floats + "\n"
                      : "  %w = arith.negf %v : " + floats + "\n") +
              "  %a = math.absf %w : " + floats + "\n  %m = arith.constant dense<0x4F000000> : " +
              floats + "\n  %i = arith.cmpf olt, %a, %m : " + floats +
              "\n  %l = arith.constant dense<-2147483648> : " + integers +
              "\n  %t = arith.fptosi %w : " + floats + " to " + integers +
              "\n  %r = arith.select %i, %t, %l : " + flags + ", " + integers +
              "\n  llvm.store %r, %y {alignment = 4 : i64} : " + integers + ", !llvm.ptr\n",
          host());
      ASSERT_TRUE(kernel);
      for (int first = 0; first + width <= 16; first += width) {
        int32_t out[16];
        (*kernel)(x + first, out);
        for (int lane = 0; lane < width; ++lane) {
          float number = rounds ? std::nearbyint(x[first + lane]) : -x[first + lane];
          bool isInside = std::abs(number) < 0x1p31f;
          EXPECT_EQ(out[lane], isInside ? static_cast<int32_t>(number) : lowest)
              << x[first + lane] << " of " << width;
        }
      }
    }
}

} // namespace
