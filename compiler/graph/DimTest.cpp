// dim_test: random size expressions: canonical text, and values against arithmetic done directly.

#include "compiler/graph/fuzz/DimExpression.h"

#include <gtest/gtest.h>

#include <random>

using heddle::graph::Dim;

namespace {

int64_t floorDivide(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// An expression and what it is worth for given symbols, without Dim's simplifications.
struct Expression {
  Dim dim;
  std::optional<int64_t> value; // nullopt after a division by zero
};

class Random {
public:
  /// Sizes are never negative, and max and min rely on it: with negative symbols there are none.
  explicit Random(unsigned seed) : generator(seed), isNatural(seed % 2 == 0) {
    for (int64_t &value : values)
      value = below(21) - (isNatural ? 0 : 10);
  }

  int64_t below(int64_t bound) { return generator() % bound; }
  std::optional<int64_t> valueOf(llvm::StringRef name) const {
    return name.size() == 1 ? std::optional<int64_t>(values[name[0] - 'a']) : std::nullopt;
  }

  Expression leaf() {
    if (below(3) == 0) {
      int64_t number = below(15) - 7;
      return {Dim(number), number};
    }
    int64_t symbol = below(3);
    return {Dim::symbol(std::string(1, 'a' + symbol)), values[symbol]};
  }

  Expression expression(int depth) {
    if (depth == 0)
      return leaf();
    Expression x = expression(depth - 1), y = expression(depth - 1);
    int64_t kind = below(8);
    if (!isNatural && (kind == 3 || kind == 4))
      kind = 5;
    if (kind == 5) { // a constant of either sign
      int64_t number = below(12) - 6;
      y = {Dim(number ? number : 3), number ? number : 3};
    }
    bool known = x.value && y.value, divides = known && *y.value != 0;
    switch (kind) {
    case 0:
      return {x.dim + y.dim, known ? std::optional(*x.value + *y.value) : std::nullopt};
    case 1:
      return {x.dim - y.dim, known ? std::optional(*x.value - *y.value) : std::nullopt};
    case 2:
      return {x.dim * y.dim, known ? std::optional(*x.value * *y.value) : std::nullopt};
    case 3:
      return {Dim::max(x.dim, y.dim),
              known ? std::optional(std::max(*x.value, *y.value)) : std::nullopt};
    case 4:
      return {Dim::min(x.dim, y.dim),
              known ? std::optional(std::min(*x.value, *y.value)) : std::nullopt};
    case 6:
      return {x.dim.mod(y.dim),
              divides ? std::optional(*x.value - floorDivide(*x.value, *y.value) * *y.value)
                      : std::nullopt};
    default:
      return {x.dim.floorDiv(y.dim),
              divides ? std::optional(floorDivide(*x.value, *y.value)) : std::nullopt};
    }
  }

private:
  std::mt19937 generator;
  bool isNatural;
  int64_t values[3];
};

TEST(Dim, evaluatesAsTheExpressionItWasBuiltFrom) {
  for (unsigned seed = 0; seed < 20000; ++seed) {
    Random random(seed);
    bool isNatural = seed % 2 == 0;
    Expression made = random.expression(1 + seed % 3);
    auto lookup = [&](llvm::StringRef name) { return random.valueOf(name); };
    if (!made.value)
      continue;
    EXPECT_EQ(made.dim.evaluate(lookup), made.value) << made.dim.str() << ", seed " << seed;
    if (isNatural && made.dim.isNeverNegative())
      EXPECT_GE(*made.value, 0) << made.dim.str() << ", seed " << seed;
  }
}

TEST(Dim, canonicalTextParsesToAnEqualDim) {
  for (unsigned seed = 0; seed < 20000; ++seed) {
    Dim dim = Random(seed).expression(1 + seed % 3).dim;
    auto parsed = Dim::parse(dim.str());
    ASSERT_TRUE(parsed) << dim.str();
    EXPECT_TRUE(*parsed == dim) << dim.str() << " is read as " << parsed->str() << ", seed "
                                << seed;
    EXPECT_EQ(parsed->str(), dim.str());
  }
}

TEST(Dim, saysNothingThatExactArithmeticDoesNot) {
  std::mt19937_64 random(7);
  std::vector<uint8_t> bytes(48);
  for (int i = 0; i < 100000; ++i) {
    for (uint8_t &byte : bytes)
      byte = random() >> 32;
    ASSERT_EQ(heddle::graph::DimExpression(bytes).problem(), "") << "expression " << i;
  }
}

TEST(Dim, substitutesValues) {
  for (unsigned seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    Expression made = random.expression(2);
    Dim constant = made.dim.substitute(
        [&](llvm::StringRef name) -> std::optional<Dim> { return Dim(*random.valueOf(name)); });
    if (made.value && constant.constant())
      EXPECT_EQ(constant.constant(), made.value) << made.dim.str() << ", seed " << seed;
  }
}

TEST(Dim, simplifiesWhatShapesAreMadeOf) {
  Dim h = Dim::symbol("h"), n = Dim::symbol("n"), w = Dim::symbol("w");
  EXPECT_EQ((h * Dim(2) + Dim(3)).str(), "2*h + 3");
  EXPECT_EQ((h * Dim(6) + Dim(3)).floorDiv(Dim(3)).str(), "2*h + 1");
  EXPECT_EQ((h * Dim(4)).floorDiv(Dim(2)), h * Dim(2));
  EXPECT_EQ((h * n * w).floorDiv(n), h * w);
  EXPECT_EQ((h * n * w * Dim(512) + h * n * n * Dim(512)).floorDiv((w + n) * n * Dim(64)),
            h * Dim(8));
  EXPECT_EQ((h * h - w * w).floorDiv(h + w), h - w);
  EXPECT_EQ((h * h - w * w).mod(h + w), Dim(0));
  EXPECT_EQ((h * n).floorDiv(h * w + h).str(), "n floordiv (w + 1)");
  EXPECT_EQ((h * Dim(3)).floorDiv(h * Dim(2) + h * w), Dim(3).floorDiv(w + Dim(2)));
  Dim row = h.floorDiv(Dim(2));
  EXPECT_EQ((row * w + row * n).floorDiv(w + n), row);
  EXPECT_EQ(h.floorDiv(Dim(2)).floorDiv(Dim(3)), h.floorDiv(Dim(6)));
  EXPECT_EQ((h - Dim(1)).floorDiv(Dim(2)) + Dim(1), (h + Dim(1)).floorDiv(Dim(2)));
  EXPECT_EQ(h.ceilDiv(Dim(2)), (h + Dim(1)).floorDiv(Dim(2)));
  EXPECT_EQ((h * Dim(4) + Dim(5)).mod(Dim(4)), Dim(1));
  EXPECT_EQ(Dim::max(h, h + Dim(1)), h + Dim(1));
  // Nested extremes are one, so broadcasting a result again names no new size.
  Dim most = Dim::max(h, Dim::symbol("w"));
  EXPECT_EQ(Dim::max(most, h), most);
  EXPECT_EQ(Dim::max(Dim::symbol("w"), Dim::max(Dim(1) + h, most)),
            Dim::max(h + Dim(1), Dim::symbol("w")));
  Dim less = Dim::max(h - Dim(1), Dim(0));
  EXPECT_EQ(Dim::max(less - Dim(2), Dim(0)), Dim::max(h - Dim(3), Dim(0)));
  EXPECT_EQ(Dim::min(Dim::min(h, Dim(7)) + Dim(1), Dim(5)), Dim::min(h + Dim(1), Dim(5)));
  EXPECT_EQ(Dim::parse(Dim::max(Dim::symbol("c"), most).str()), Dim::max(most, Dim::symbol("c")));
  EXPECT_EQ(Dim::min(h, Dim(0)), Dim(0));
  EXPECT_EQ(h - h, Dim(0));
}

TEST(Dim, roundsTowardNegativeInfinity) {
  EXPECT_EQ(Dim(-7).floorDiv(Dim(2)), Dim(-4));
  EXPECT_EQ(Dim(7).floorDiv(Dim(-2)), Dim(-4));
  EXPECT_EQ(Dim(-7).mod(Dim(3)), Dim(2));
  EXPECT_EQ(Dim(-7).ceilDiv(Dim(2)), Dim(-3));
}

TEST(Dim, refusesTextsThatAreNoExpressions) {
  for (const char *text :
       {"", "h +", "max(h)", "(h", "h h", "2*", "floordiv 2", "99999999999999999999"})
    EXPECT_FALSE(Dim::parse(text)) << text;
  EXPECT_FALSE(Dim::parse("9223372036854775809"));
  for (const Dim &lowest : {Dim(INT64_MIN), Dim::symbol("h") * Dim(63) + Dim(INT64_MIN)})
    EXPECT_EQ(Dim::parse(lowest.str()), lowest) << lowest.str();
  EXPECT_FALSE(Dim::parse(std::string(10000, '(') + "h" + std::string(10000, ')')));
}

TEST(Dim, knowsNothingOfDivisionByZeroAndUnknownSymbols) {
  auto none = [](llvm::StringRef) { return std::optional<int64_t>(); };
  auto zero = [](llvm::StringRef) { return std::optional<int64_t>(0); };
  EXPECT_FALSE(Dim::symbol("h").evaluate(none));
  EXPECT_FALSE(Dim(1).floorDiv(Dim::symbol("h")).evaluate(zero));
  EXPECT_FALSE(Dim(1).mod(Dim::symbol("h")).evaluate(zero));
}

TEST(Dim, nestsAsDeepAsItsTextIsRead) {
  Dim size = Dim::symbol("a");
  for (int i = 0; !size.isTooLarge(); ++i) {
    EXPECT_EQ(Dim::parse(size.str()), size);
    size = Dim(i) - Dim::max(size, Dim::symbol("b" + std::to_string(i)));
    ASSERT_LT(i, 1000);
  }
}

TEST(Dim, saysWhereItsNumbersLeaveInt64) {
  Dim h = Dim::symbol("h"), large(int64_t(1) << 62);
  const Dim beyond[] = {large + large,
                        large * Dim(2) * h,
                        h * large * Dim(4),
                        Dim(INT64_MIN) * Dim(-1),
                        Dim(INT64_MIN) - Dim(1),
                        h.ceilDiv(large * Dim(2)),
                        Dim(INT64_MIN).floorDiv(Dim(-1)),
                        Dim::tooLarge() - Dim::tooLarge()};
  for (const Dim &dim : beyond) {
    EXPECT_TRUE(dim.isTooLarge()) << dim.str();
    EXPECT_FALSE(dim.isNeverNegative());
    EXPECT_FALSE(dim.evaluate([](llvm::StringRef) { return std::optional<int64_t>(0); }));
    EXPECT_EQ(dim * Dim(0) == Dim(0), false) << "what has no value is not 0 times something";
    EXPECT_EQ(Dim::max(dim, h), Dim::tooLarge());
    EXPECT_EQ(dim.mod(Dim(7)), Dim::tooLarge());
  }
  // A result inside of int64 is exact.
  EXPECT_EQ((h * large).floorDiv(Dim(64)), h * Dim(int64_t(1) << 56));
  EXPECT_EQ(h.floorDiv(large).floorDiv(large).str(),
            "(h floordiv 4611686018427387904) floordiv 4611686018427387904");
}

TEST(Dim, staysAsItIsWhereAVectorInsertsNone) {
  llvm::SmallVector<Dim> sizes{Dim(2), Dim::symbol("n")};
  sizes.insert(sizes.begin(), 0, Dim(1));
  EXPECT_EQ(sizes, (llvm::SmallVector<Dim>{Dim(2), Dim::symbol("n")}));
}

} // namespace
