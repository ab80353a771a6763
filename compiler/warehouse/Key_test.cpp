// Key_test: keys as they are read and matched, and the loops that decide a group's schedule.

#include "compiler/warehouse/Key.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace heddle;
using graph::Dim;
using graph::Loop;
using graph::LoopNest;
using warehouse::Fit;
using warehouse::Key;

namespace {

using Strings = std::vector<std::string>;
constexpr auto P = Loop::Kind::Parallel, S = Loop::Kind::Reduction, W = Loop::Kind::Window;

/// Loops one inside of the other; the innermost does `op`.
LoopNest chain(ArrayRef<std::pair<int64_t, Loop::Kind>> loops, std::string op) {
  LoopNest nest;
  for (auto [extent, kind] : llvm::reverse(loops)) {
    Loop loop{Dim(extent), kind, {}, std::move(nest.loops)};
    if (loop.children.empty())
      loop.ops = {op};
    nest.loops = {std::move(loop)};
  }
  if (loops.empty())
    nest.ops = {op};
  return nest;
}

bool matches(StringRef text, const LoopNest &nest) {
  auto key = Key::parse(text);
  EXPECT_TRUE(!!key) << text.str();
  return key->match(nest).has_value();
}

std::string problemOf(StringRef text) {
  auto key = Key::parse(text);
  return key ? "" : llvm::toString(key.takeError());
}

TEST(Key, takesAnyNumberOfParallelLoops) {
  EXPECT_TRUE(matches("p* { k:s(dot) }", chain({{7, P}, {8, P}, {9, S}}, "dot")));
  EXPECT_TRUE(matches("p* { k:s(dot) }", chain({{9, S}}, "dot")));
  EXPECT_FALSE(matches("p+ { k:s(dot) }", chain({{9, S}}, "dot")));
  EXPECT_FALSE(matches("p* { k:s(dot) }", chain({{7, P}, {9, S}, {3, W}}, "dot")));
}

TEST(Key, tellsOpsApart) {
  LoopNest nest = chain({{7, P}, {9, S}}, "sum");
  EXPECT_TRUE(matches("p* { s+(max|sum) }", nest));
  EXPECT_TRUE(matches("p* { s+(*) }", nest));
  EXPECT_FALSE(matches("p* { s+(max|min) }", nest));
  EXPECT_FALSE(matches("p* { s+ }", nest));
}

TEST(Key, tellsExtentsApart) {
  LoopNest nest = chain({{7, P}, {3, W}, {3, W}}, "dot");
  EXPECT_TRUE(matches("p* { h=3:w { w=3:w(dot) } }", nest));
  EXPECT_FALSE(matches("p* { h=5:w { w=3:w(dot) } }", nest));
}

TEST(Key, takesScalars) {
  EXPECT_TRUE(matches("p*(*)", chain({}, "exp")));
  EXPECT_FALSE(matches("p+(*)", chain({}, "exp")));
  EXPECT_FALSE(matches("p* { s+(sum) }", chain({}, "exp")));
}

TEST(Key, takesLoopsBesideEachOther) {
  // A softmax after a product, as one nest: m:p { n:s(max) { k:s(dot) } n:s(sub,exp,sum) n:p(div)
  // }.
  LoopNest nest;
  Loop dot{Dim(4), S, {"dot"}, {}};
  nest.loops = {{Dim(2),
                 P,
                 {},
                 {{Dim(3), S, {"max"}, {dot}},
                  {Dim(3), S, {"sub", "exp", "sum"}, {}},
                  {Dim(3), P, {"div"}, {}}}}};
  EXPECT_TRUE(matches("p { s(max) { s(dot) } s(sub,exp,sum) p(div|mul) }", nest));
  EXPECT_FALSE(matches("p { s(max) { s(dot) } s(sub,exp,sum) }", nest));
}

TEST(Key, bindsExtentsByLetter) {
  auto extents = Key::parse("m:p* { k:s(dot) }")->match(chain({{7, P}, {8, P}, {9, S}}, "dot"));
  ASSERT_TRUE(extents);
  EXPECT_TRUE(extents->at("m").isConstant(56));
  EXPECT_TRUE(extents->at("k").isConstant(9));
}

TEST(Key, saysWhereItIsWrong) {
  EXPECT_EQ(problemOf("p* { k:q(dot) }"),
            "key 'p* { k:q(dot) }', at column 9: 'q' is no kind of loop; kinds: p (parallel), "
            "s (reduction), w (window); a loop is written 'k:s(dot)', see docs/spec/cards.md");
  for (const char *text :
       {"", "p* {", "p* { s(dot }", "p(dot", "p)", "k=3:s+(dot)", "k=x:s", "p() "})
    EXPECT_NE(problemOf(text), "") << text;
  EXPECT_NE(problemOf(std::string(400, 'p').append(100, '{')), "");
}

/// A nest of random loops and ops.
LoopNest randomNest(std::mt19937 &random) {
  auto upTo = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  const char *ops[] = {"dot", "max", "sum", "exp", "mul", "permute"};
  std::function<Loop(int)> make = [&](int depth) {
    Loop loop{Dim(2 + upTo(3)), static_cast<Loop::Kind>(upTo(2))};
    for (int i = upTo(2); i > 0; --i)
      loop.ops.push_back(ops[upTo(5)]);
    for (int i = depth > 0 ? upTo(2) : 0; i > 0; --i)
      loop.children.push_back(make(depth - 1));
    return loop;
  };
  LoopNest nest;
  for (int i = upTo(1); i >= 0; --i)
    nest.loops.push_back(make(3));
  return nest;
}

TEST(Key, isReadAsItIsWrittenAndFitsItsOwnNest) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    LoopNest nest = randomNest(random);
    Key key = Key::of(nest);
    EXPECT_EQ(llvm::cantFail(Key::parse(key.str())).str(), nest.str());
    EXPECT_EQ(key.fit(nest), Fit::Full) << nest.str();
    if (nest.loops.size() > 1) { // a nest that is not yet whole may become so
      nest.loops.pop_back();
      EXPECT_NE(key.fit(nest), Fit::No) << nest.str() << " in " << key.str();
    }
  }
}

class Subgraph : public testing::Test {
protected:
  Fit fit(StringRef key, StringRef nest) {
    auto parsed = Key::parse(key);
    EXPECT_TRUE(!!parsed) << key.str();
    return parsed->fit(read(nest));
  }
  /// A nest as `str` prints it; loops of one letter have one extent.
  static LoopNest read(StringRef text) {
    LoopNest nest;
    nest.loops = loopsOf(text); // consumes it
    return nest;
  }
  static std::vector<Loop> loopsOf(StringRef &text) {
    std::vector<Loop> loops;
    for (text = text.ltrim(); !text.empty() && text.front() != '}'; text = text.ltrim()) {
      Loop loop{Dim::symbol(text.take_front()),
                static_cast<Loop::Kind>(StringRef("psw").find(text[2]))};
      text = text.drop_front(3);
      if (text.consume_front("(")) {
        auto [ops, rest] = text.split(')');
        SmallVector<StringRef> names;
        ops.split(names, ',');
        loop.ops.assign(names.begin(), names.end());
        text = rest;
      }
      text = text.ltrim();
      if (text.consume_front("{")) {
        loop.children = loopsOf(text);
        text.consume_front("}");
      }
      loops.push_back(std::move(loop));
    }
    return loops;
  }
};

constexpr StringLiteral kSoftmaxOfProduct =
    "m:p { n:s(max) { k:s(dot) } n:s(sub,exp,sum) n:p(div) }";

TEST_F(Subgraph, fitsInPartsAsItGrows) {
  EXPECT_EQ(fit(kSoftmaxOfProduct, "m:p { n:p { k:s(dot) } }"), Fit::Partial); // rule 1
  EXPECT_EQ(fit(kSoftmaxOfProduct, "m:p { n:s(max) { k:s(dot) } n:p(sub) }"), Fit::Partial);
  EXPECT_EQ(fit(kSoftmaxOfProduct, kSoftmaxOfProduct), Fit::Full);
  EXPECT_EQ(fit(kSoftmaxOfProduct, "m:s { n:p { k:s(dot) } }"), Fit::No);       // rule 2
  EXPECT_EQ(fit("m:p { n:s(sum) }", "m:p { n:s(sum) n:s(sum) }"), Fit::No);     // rule 3
  EXPECT_EQ(fit(kSoftmaxOfProduct, "m:p { n:s(prod) { k:s(dot) } }"), Fit::No); // rule 4
}

TEST_F(Subgraph, takesTrivialOpsThatTheKeyDoesNotName) {
  EXPECT_EQ(fit("p* { k:s(dot) }", "m:p { n:p(add,max) { k:s(dot) } }"), Fit::Full);
  EXPECT_EQ(fit("m:p { n:s(sum) n:p }", "m:p(sqrt) { n:s(mul,sum) n:p(div,mul) }"), Fit::Full);
  EXPECT_EQ(fit("m:p { n:s(sum) n:p }", "m:p { n:s(mul,sum) n:p(permute) }"), Fit::No);
}

TEST_F(Subgraph, hasOneExtentForOneLetter) {
  EXPECT_EQ(fit("m:p { n:s(sum) n:p }", "m:p { n:s(sum) n:p(div) }"), Fit::Full);
  EXPECT_NE(fit("m:p { n:s(sum) n:p }", "m:p { n:s(sum) k:p(div) }"), Fit::Full);
}

class Skeleton : public testing::Test {
protected:
  Skeleton() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  /// Skeletons of the deciding ops of the one group.
  Strings of(StringRef arguments, StringRef body) {
    std::string text =
        ("func.func @main(" + arguments + ") {\n%g = graph.group \"g\" : tensor<f32> {\n" + body +
         "\n%made = graph.constant dense<0.0> : tensor<f32>\n"
         "graph.yield %made : tensor<f32>\n}\nreturn\n}")
            .str();
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    Strings skeletons;
    if (module)
      module->walk([&](graph::GroupOp group) {
        for (Operation *op : warehouse::decidingOps(group))
          skeletons.push_back(warehouse::skeletonOf(op).str());
      });
    return skeletons;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Skeleton, walksAFoldInTheOrderOfMemory) {
  auto found = of("%x: tensor<2x3xf32>", R"(
    %a = graph.reduce_sum %x {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
    %b = graph.reduce_max %x {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>)");
  EXPECT_EQ(found, (Strings{"m:s { n:p(sum) }", "m:p { n:s(max) }"}));
}

TEST_F(Skeleton, ofADepthwiseConvolutionHasNoLoopOverChannels) {
  constexpr StringLiteral kConv = R"(
    %c = graph.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>,
      high = array<i64: 0>, groups = GROUPS, channels_last = true}
      : (tensor<1x5xCHANNELSxf32>, tensor<2x1x3xf32>) -> tensor<1x3x2xf32>)";
  auto with = [&](const std::string &groups) {
    std::string text = kConv.str();
    text.replace(text.find("GROUPS"), 6, groups);
    text.replace(text.find("CHANNELS"), 8, groups);
    return of("%x: tensor<1x5x" + groups + "xf32>, %w: tensor<2x1x3xf32>", text);
  };
  EXPECT_EQ(with("2"), Strings{"m:p { n:p { k:w(dot) } }"});
  EXPECT_EQ(with("1"), Strings{"m:p { n:p { k:s { a:w(dot) } } }"});
}

TEST_F(Skeleton, leavesElementwiseOpsOut) {
  auto found = of("%x: tensor<2x3xf32>, %y: tensor<3x4xf32>", R"(
    %d = graph.matmul %x, %y : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %e = graph.exp %d : tensor<2x4xf32>)");
  EXPECT_EQ(found, Strings{"m:p { n:p { k:s(dot) } }"});
}

} // namespace
