// Tuner_test: a search visits what is near the best first, and goes on where another one ended; one
// that a cost model leads measures little.

#include "compiler/records/Records.h"
#include "compiler/support/Error.h"
#include "compiler/trial/Comparison.h"
#include "compiler/tuner/ExtractedGroup.h"
#include "compiler/tuner/Search.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <unistd.h>

using namespace mlir;
using namespace heddle;
using namespace heddle::tuner;
using plan::Choice;

namespace {

/// Two cards whose speed is a function of their knobs.
class Searches : public testing::Test {
protected:
  Searches() {
    for (auto [name, card] : {std::pair("flat", &flat), std::pair("tile", &tile)}) {
      card->name = name;
      card->hash = "1";
    }
    tile.knobs = {{"m", {1, 2, 4, 6, 8, 12}, 4}, {"n", {4, 8, 16, 32, 64}, 8}};
    flat.knobs = {{"chunk", {1, 2}, 1}};
    tile.mechanism = &mechanism::kContraction;
    flat.mechanism = &mechanism::kPointwise;
    base = {&tile, {{"m", 4}, {"n", 8}}};
  }

  static double speedupOf(const Choice &choice) {
    if (choice.card->name == "flat")
      return 0.5;
    double m = choice.knobs.at("m"), n = choice.knobs.at("n");
    return 2 / (1 + std::abs(m - 8) / 8 + std::abs(n - 32) / 32);
  }

  /// Goes on until nothing is left; the candidates in their order.
  std::vector<std::string> finish(Search &search) {
    std::vector<std::string> texts;
    while (auto choice = search.next()) {
      texts.push_back(records::textOf(*choice));
      search.tell(*choice, speedupOf(*choice));
      known.push_back(*choice);
    }
    return texts;
  }

  warehouse::Card tile, flat;
  Choice base;
  std::vector<Choice> known;
};

TEST_F(Searches, FindTheBestAndEnd) {
  Search search({&tile, &flat}, base, 2, 1);
  search.tell(base, 1);
  std::vector<std::string> texts = finish(search);
  EXPECT_EQ(texts.front(), "flat@1 chunk=1"); // each card is tried before any knob
  EXPECT_NE(llvm::find(texts, "tile@1 m=8 n=32"), texts.end());
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::unique(texts.begin(), texts.end()), texts.end()) << "none is tried twice";
}

TEST_F(Searches, FollowFromTheSeed) {
  Search one({&tile, &flat}, base, 2, 7), same({&tile, &flat}, base, 2, 7),
      other({&tile, &flat}, base, 2, 8);
  for (Search *search : {&one, &same, &other})
    search->tell(base, 1);
  auto texts = finish(one);
  EXPECT_EQ(finish(same), texts);
  EXPECT_NE(finish(other), texts);
}

TEST_F(Searches, GoOnWhereAnotherOneEnded) {
  Search first({&tile, &flat}, base, 2, 3);
  first.tell(base, 1);
  finish(first);
  Search second({&tile, &flat}, base, 2, 3);
  second.tell(base, 1);
  for (const Choice &choice : std::vector<Choice>(known))
    second.tell(choice, speedupOf(choice));
  EXPECT_TRUE(finish(second).empty());
}

TEST_F(Searches, LeaveWhatOnlySharesTheWorkToSeveralWorkers) {
  for (int64_t workers : {1, 2}) {
    Search search({&tile, &flat}, base, workers, 1);
    std::vector<std::string> texts = finish(search);
    EXPECT_EQ(llvm::is_contained(texts, "flat@1 chunk=2"), workers == 2);
    EXPECT_TRUE(llvm::is_contained(texts, "flat@1 chunk=1"));
  }
}

TEST_F(Searches, TryBothPrecisionsWhereFactorsMayBeRounded) {
  auto rounded = [](const std::string &text) { return StringRef(text).contains(" bf16"); };
  Search search({&tile, &flat}, base, 2, 1, {&tile});
  search.tell(base, 1);
  std::vector<std::string> texts;
  while (auto choice = search.next()) {
    texts.push_back(records::textOf(*choice));
    search.tell(*choice, speedupOf(*choice) * (choice->isShort ? 1.5 : 1));
  }
  EXPECT_EQ(texts[0], "tile@1 bf16 m=4 n=8");
  EXPECT_EQ(texts[1], "flat@1 chunk=1");
  EXPECT_TRUE(llvm::is_contained(texts, "tile@1 bf16 m=8 n=32"));
  EXPECT_EQ(search.bestSpeedup(), 3);
  EXPECT_FALSE(llvm::all_of(texts, rounded)) << "f32 competes";
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::unique(texts.begin(), texts.end()), texts.end()) << "none is tried twice";
}

TEST_F(Searches, BeginWithTheRulesChoiceOfTheOtherPrecision) {
  Search search({&tile, &flat}, base, 2, 1, {&tile});
  Choice other = records::shortened(base);
  other.knobs = {{"m", 8}, {"n", 32}};
  search.beginWith(other);
  search.tell(base, 1);
  EXPECT_EQ(records::textOf(*search.next()), "tile@1 bf16 m=8 n=32");
}

/// A search that a cost model leads. It knows of one card alone.
class LedSearches : public Searches {
protected:
  using Says = std::function<double(double m, double n)>;

  Favourites favourites(const Says &logarithm, int64_t count) {
    std::vector<Favourites::Candidate> all;
    double own = logarithm(4, 8);
    for (int64_t m : tile.knobs[0].domain)
      for (int64_t n : tile.knobs[1].domain)
        all.push_back({{&tile, {{"m", m}, {"n", n}}}, logarithm(double(m), double(n)) - own});
    return Favourites(all, base, {count, 2e-4});
  }

  /// The candidates that are measured, of at most `count`.
  std::vector<std::string> led(const Says &logarithm, int64_t count) {
    Search search({&tile, &flat}, base, 2, 1);
    search.tell(base, 1);
    search.follow(favourites(logarithm, count));
    std::vector<std::string> texts = finish(search);
    highest = search.bestSpeedup();
    return texts;
  }

  static double truth(double m, double n) {
    return -std::log(2 / (1 + std::abs(m - 8) / 8 + std::abs(n - 32) / 32));
  }

  double highest = 1;
};

TEST_F(LedSearches, MeasureWhatTheModelFindsFastest) {
  std::vector<std::string> texts = led(truth, 3);
  ASSERT_GE(texts.size(), 2u);
  EXPECT_EQ(texts[0], "flat@1 chunk=1"); // the model does not score it
  EXPECT_EQ(texts[1], "tile@1 m=8 n=32");
  EXPECT_LE(texts.size(), 1u + 3u);
  EXPECT_EQ(highest, 2);
}

TEST_F(LedSearches, EndWhereNothingIsToBeGained) {
  // A right model leaves little to expect once its favourite is known.
  EXPECT_LT(led(truth, 100).size(), 31u);
  // One that finds all others much slower is believed.
  auto texts = led([](double m, double n) { return m == 4 && n == 8 ? 0.0 : 2.0; }, 100);
  EXPECT_EQ(texts, std::vector<std::string>{"flat@1 chunk=1"});
}

TEST_F(LedSearches, LearnFromWhatTheModelGotWrong) {
  // It promises most where tiles are the largest, which are slow; what is near these is then left
  // alone.
  auto wrong = [](double m, double n) { return truth(m, n) - (n == 64 ? 0.8 : 0.0); };
  std::vector<std::string> texts = led(wrong, 6);
  EXPECT_NE(texts[1].find("n=64"), std::string::npos);
  EXPECT_NE(llvm::find(texts, "tile@1 m=8 n=32"), texts.end());
  EXPECT_EQ(highest, 2);
}

TEST_F(LedSearches, CountWhatIsKnown) {
  Search search({&tile, &flat}, base, 2, 1);
  search.tell(base, 1);
  search.tell({&tile, {{"m", 8}, {"n", 32}}}, 2);
  search.tell({&flat, {{"chunk", 1}}}, 0.5);
  search.follow(favourites(truth, 1));
  EXPECT_FALSE(search.next().has_value());
  search.follow(favourites([](double m, double n) { return -m * n / 100; }, 2));
  EXPECT_TRUE(search.next().has_value());
}

TEST_F(LedSearches, TakeAFailureForSlow) {
  Search search({&tile}, base, 2, 1);
  search.tell(base, 1);
  search.follow(favourites(truth, 4));
  auto first = search.next();
  ASSERT_TRUE(first.has_value());
  search.tell(*first, 0);
  auto second = search.next();
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(records::textOf(*second), records::textOf(*first));
}

TEST_F(LedSearches, TellPrecisionsApart) {
  std::vector<Favourites::Candidate> all;
  for (bool isShort : {false, true}) {
    Choice choice = base;
    choice.isShort = isShort;
    choice.knobs["m"] = 8;
    all.push_back({choice, isShort ? -1.0 : 0.5});
  }
  Favourites favourites(all, base, {4, 2e-4});
  auto next = favourites.next();
  ASSERT_TRUE(next);
  EXPECT_EQ(records::textOf(*next), "tile@1 bf16 m=8 n=8");
}

/// Groups, cut out, and what candidates of bf16 have to compute.
class Roundings : public testing::Test {
protected:
  Roundings() {
    context.disableMultithreading();
    context.loadDialect<graph::GraphDialect, func::FuncDialect>();
    options.threads = 1;
    options.shortFloats = program::ShortFloats::Emulated;
  }

  /// The group of this mechanism, of 6 x 40 numbers and weights.
  void make(const std::string &mechanism, const std::string &ops,
            const std::string &result = "6x24xf32") {
    std::string type = "tensor<" + result + ">";
    module = parseSourceString<ModuleOp>(
        "func.func @main(%x: tensor<6x40xf32>, %w: tensor<40x24xf32>, %v: tensor<6x40xf32>) -> " +
            type + " { %g = graph.group \"g\" {mechanism = \"" + mechanism + "\"} : " + type +
            " {" + ops + "graph.yield %r : " + type + "} return %g : " + type + "}",
        &context);
    ASSERT_TRUE(module);
    graph::GroupOp group;
    module->walk([&](graph::GroupOp each) { group = each; });
    subject = llvm::cantFail(ExtractedGroup::make(group, {}, 1));
  }
  std::string differenceOf(bool isShort) {
    const RoundedResults &rounded = subject->rounded(options, 30);
    EXPECT_EQ(rounded.problem, "");
    Choice choice;
    choice.isShort = isShort;
    auto program = llvm::cantFail(subject->compile(choice, options));
    EXPECT_TRUE(program->isCarriedOut);
    reference::Tensors inputs = subject->inputs();
    return llvm::cantFail(trial::differenceOf(rounded.results, *program, inputs,
                                              subject->resultElements(), "the rounded",
                                              rounded.slack));
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<ExtractedGroup> subject;
  CompileOptions options;
};

static const char kMatmul[] = " = graph.matmul %FACTOR, %w : (tensor<6x40xf32>, tensor<40x24xf32>) "
                              "-> tensor<6x24xf32>\n";
static std::string matmul(const std::string &result, const std::string &factor) {
  std::string text = result + kMatmul;
  return text.replace(text.find("%FACTOR"), 7, factor);
}

TEST_F(Roundings, AreThoseOfFactorsAndNoOthers) {
  make("contraction", matmul("%p", "%x") + "%r = graph.exp %p : tensor<6x24xf32>\n");
  EXPECT_EQ(differenceOf(true), "");
  EXPECT_NE(differenceOf(false), "") << "f32 is farther off than the order of sums explains";
  EXPECT_EQ(subject->rounded(options, 30).slack, 0);
}

TEST_F(Roundings, AreKnownOfFactorsThatAreRoundedOnceBefore) {
  make("contraction", "%a = graph.abs %x : tensor<6x40xf32>\n" + matmul("%r", "%a"));
  EXPECT_EQ(subject->rounded(options, 30).slack, 0);
  make("contraction", "%a = graph.exp %x : tensor<6x40xf32>\n" + matmul("%r", "%a"));
  EXPECT_GT(subject->rounded(options, 30).slack, 0) << "its last bit may differ";
}

TEST_F(Roundings, AllowWhatAttentionRoundsItsWeightsBy) {
  make("attention",
       "%t = graph.transpose %v {permutation = array<i64: 1, 0>} : (tensor<6x40xf32>) -> "
       "tensor<40x6xf32>\n"
       "%s = graph.matmul %x, %t : (tensor<6x40xf32>, tensor<40x6xf32>) -> tensor<6x6xf32>\n"
       "%m = graph.reduce_max %s {axes = array<i64: 1>, keep_dims = true} : (tensor<6x6xf32>) -> "
       "tensor<6x1xf32>\n"
       "%b = graph.broadcast %m : (tensor<6x1xf32>) -> tensor<6x6xf32>\n"
       "%d = graph.sub %s, %b : tensor<6x6xf32>\n"
       "%e = graph.exp %d : tensor<6x6xf32>\n"
       "%u = graph.reduce_sum %e {axes = array<i64: 1>, keep_dims = true} : (tensor<6x6xf32>) -> "
       "tensor<6x1xf32>\n"
       "%c = graph.broadcast %u : (tensor<6x1xf32>) -> tensor<6x6xf32>\n"
       "%p = graph.div %e, %c : tensor<6x6xf32>\n"
       "%r = graph.matmul %p, %v : (tensor<6x6xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>\n",
       "6x40xf32");
  EXPECT_EQ(differenceOf(true), "");
  EXPECT_GT(subject->rounded(options, 30).slack, 0);
  EXPECT_LT(subject->rounded(options, 30).slack, 0.02); // of numbers up to 2
}

TEST(Efforts, ShareTheTimeThatIsLeft) {
  EXPECT_EQ(trial::decideSizeWithin(100, 4).seconds, trial::kDecideSize.seconds);
  trial::Effort less = trial::decideSizeWithin(8, 10);
  EXPECT_LT(less.seconds, trial::kDecideSize.seconds);
  EXPECT_TRUE(less.isFinal);
  EXPECT_GT(trial::decideSizeWithin(0, 0).seconds, 0);
}

} // namespace
