// StrategyTest: strategies find the decisions that pay among those that do not, try nothing twice,
// and decide nothing in two ways; places that are alike are one site.

#include "compiler/tuner/plans/Strategy.h"
#include "compiler/graph/Graph.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/support/Error.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace heddle;
using namespace heddle::tuner;

namespace {

/// 12 sites of which 2 and 7 win, together more than alone; 3 and 4 are about one node.
std::vector<Site> exampleSites() {
  std::vector<Site> sites;
  for (int i = 0; i < 12; ++i)
    sites.push_back({Section::Fusion, "apart", {"n" + std::to_string(i)}, 1.0 + i % 3});
  sites[4] = {Section::Fusion, "joined", {"n3"}, 1};
  return sites;
}

double secondsOf(const Decisions &decisions) {
  double seconds = 10 + 0.2 * static_cast<double>(decisions.size());
  if (decisions.count(2))
    seconds -= 1;
  if (decisions.count(2) && decisions.count(7))
    seconds -= 3;
  return decisions.count(9) ? std::numeric_limits<double>::infinity() : seconds;
}

class Strategies : public testing::TestWithParam<const char *> {};

TEST_P(Strategies, FindWhatPays) {
  std::vector<Site> sites = exampleSites();
  int found = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    auto strategy = strategyOf(GetParam(), seed);
    strategy->setScene(sites, 0);
    std::set<Decisions> tried;
    for (int i = 0; i < 150; ++i) {
      auto decisions = strategy->next();
      ASSERT_TRUE(decisions);
      EXPECT_TRUE(tried.insert(*decisions).second);
      EXPECT_FALSE(decisions->count(3) && decisions->count(4));
      EXPECT_EQ(decisions->empty(), i == 0); // the compiler's own plan comes first
      strategy->setScene(sites, i / 150.0);
      strategy->tell(*decisions, secondsOf(*decisions));
    }
    EXPECT_EQ(strategy->triedCount(), 150u);
    found += strategy->best() == Decisions{2, 7};
  }
  EXPECT_GE(found, 9);
}

TEST_P(Strategies, EndWhereNothingIsLeft) {
  std::vector<Site> sites = exampleSites();
  sites.resize(2);
  auto strategy = strategyOf(GetParam(), 0);
  strategy->setScene(sites, 0);
  int count = 0;
  for (; auto decisions = strategy->next(); ++count)
    strategy->tell(*decisions, 1);
  EXPECT_GE(count, 3);
  EXPECT_LE(count, 4);
}

TEST_P(Strategies, SeldomChangeWhatWasClearlySlower) {
  std::vector<Site> sites = exampleSites();
  int slow = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    auto strategy = strategyOf(GetParam(), seed);
    strategy->setScene(sites, 0);
    strategy->tell(*strategy->next(), 1);
    for (int i = 0; i < 60; ++i) {
      auto decisions = strategy->next();
      ASSERT_TRUE(decisions);
      bool isSlow = decisions->count(5) || decisions->count(8);
      slow += isSlow;
      strategy->tell(*decisions, isSlow ? 3 : 1);
    }
  }
  EXPECT_LT(slow, 150); // 600 plans: most have several sites, and these are a quarter of all
}

INSTANTIATE_TEST_SUITE_P(Of, Strategies, testing::Values("annealing", "evolution"));

TEST(Strategy, IsKnownByName) { EXPECT_EQ(strategyOf("luck", 0), nullptr); }

TEST(Sites, ThatAreAlikeAreOne) {
  static constexpr llvm::StringLiteral kText = R"(
    func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %w = graph.constant dense<0.5> : tensor<64x64xf32>
      %a = graph.matmul %x, %w
          : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("a")
      %b = graph.exp %a : tensor<64x64xf32> loc("b")
      %c = graph.matmul %b, %w
          : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("c")
      %d = graph.exp %c : tensor<64x64xf32> loc("d")
      return %d : tensor<64x64xf32>
    })";
  auto context = std::make_shared<mlir::MLIRContext>();
  context->loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kText, context.get());
  ASSERT_TRUE(module);
  CompileOptions options;
  options.plansOnly = true;
  auto planned = compileGraph(context, std::move(module), options);
  ASSERT_TRUE(bool(planned)) << llvm::toString(planned.takeError());
  std::vector<Site> sites =
      sitesOf(*(*planned)->graph, {{"a", "last"}}, [](graph::GroupOp) { return 2.0; });
  auto isSite = [&](const Site &site) { return llvm::is_contained(sites, site); };
  EXPECT_TRUE(isSite({Section::Fusion, "apart", {"a", "c"}}));
  EXPECT_TRUE(isSite({Section::Fusion, "joined", {"b"}})); // nothing reads the last group
  EXPECT_TRUE(isSite({Section::Layouts, "first", {"a"}}));
  EXPECT_EQ(sites.size(), 3u);
  auto alike = llvm::find_if(sites, [](const Site &site) { return site.names.size() == 2; });
  ASSERT_NE(alike, sites.end());
  EXPECT_EQ(alike->seconds, 4);

  plan::Plan plan = planOf(sites, {static_cast<size_t>(alike - sites.begin())});
  EXPECT_EQ(plan.fusion, (std::map<std::string, std::string>{{"a", "apart"}, {"c", "apart"}}));
  EXPECT_TRUE(plan.layouts.empty() && plan.split.empty() && plan.groups.empty());
}

} // namespace
