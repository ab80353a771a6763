// LearnedChooserTest: when a cost model is followed, and when the other chooser is.

#include "compiler/cost/LearnedChooser.h"
#include "compiler/records/Records.h"
#include "compiler/support/Error.h"
#include "compiler/warehouse/Warehouse.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;
using cost::LearnedChooser;

namespace {

/// Says of each candidate what a function of its features says.
class FakeModel : public cost::Model {
public:
  llvm::Expected<Scores> score(const cost::GroupFeatures &group,
                               ArrayRef<std::vector<double>> candidates) override {
    if (!failure.empty())
      return makeError(ErrorCode::Refused, failure);
    EXPECT_FALSE(group.ops.empty());
    EXPECT_LE(candidates.size(), 256u);
    Scores scores;
    for (const std::vector<double> &each : candidates) {
      scores.logarithms.push_back(logarithm(each));
      scores.outside.push_back(outside(each));
      ++asked;
    }
    return scores;
  }

  static double at(const std::vector<double> &features, StringRef name) {
    std::vector<std::string> names = cost::candidateNames();
    return features[llvm::find(names, name) - names.begin()];
  }
  static double knob(const std::vector<double> &features, StringRef name) {
    return std::round(std::exp2(at(features, name) - 1) - 1);
  }

  std::function<double(const std::vector<double> &)> logarithm = [](auto &) { return 0.0; };
  std::function<double(const std::vector<double> &)> outside = [](auto &) { return 0.0; };
  std::string failure;
  int64_t asked = 0;
};

class Choosers : public testing::Test {
protected:
  Choosers()
      : cards((context.loadDialect<graph::GraphDialect, func::FuncDialect>(),
               llvm::cantFail(warehouse::Warehouse::load(context)))) {}

  graph::GroupOp product(StringRef rows = "100", StringRef dims = "") {
    std::string type = ("tensor<" + rows + "x64xf32" + dims + ">").str();
    module = parseSourceString<ModuleOp>("func.func @main(%x: " + type +
                                             ", %w: tensor<64x64xf32>) -> " + type + R"( {
      %g = graph.group "dense" {kind = "contraction"} : )" +
                                             type + R"( {
        %d = graph.matmul %x, %w : ()" + type +
                                             ", tensor<64x64xf32>) -> " + type + R"(
        graph.yield %d : )" + type + R"(
      }
      return %g : )" + type + "\n}",
                                         &context);
    EXPECT_TRUE(module);
    graph::GroupOp found;
    module->walk([&](graph::GroupOp group) { found = group; });
    return found;
  }

  plan::Choice choose(graph::GroupOp group, bool isMeasured = false) {
    chooser.emplace(model, byRule, [=](graph::GroupOp) { return isMeasured; });
    return llvm::cantFail(chooser->choose(group, cards.offer(group), {}));
  }
  plan::Choice ruled(graph::GroupOp group) {
    return llvm::cantFail(byRule.choose(group, cards.offer(group), {}));
  }
  const cost::Decision &decision() { return chooser->decisions().at("dense"); }

  MLIRContext context;
  warehouse::Warehouse cards;
  plan::DefaultChooser byRule;
  FakeModel model;
  std::optional<LearnedChooser> chooser;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Choosers, FollowAModelThatPromisesMore) {
  model.logarithm = [](auto &features) { // least at m = 5, n = 32, tiles = 4
    return std::abs(FakeModel::knob(features, "knob_m") - 5) / 10 +
           std::abs(FakeModel::knob(features, "knob_n") - 32) / 100 +
           std::abs(FakeModel::knob(features, "knob_tiles") - 4) / 100;
  };
  graph::GroupOp group = product();
  plan::Choice base = ruled(group), choice = choose(group);
  EXPECT_EQ(choice.card, base.card);
  EXPECT_EQ(choice.knobs.at("m"), 5);
  EXPECT_EQ(choice.knobs.at("n"), 32);
  EXPECT_EQ(choice.knobs.at("tiles"), 4);
  for (auto &[name, value] : choice.knobs)
    EXPECT_TRUE(choice.card->knob(name)->allows(value)) << name;
  EXPECT_EQ(decision().kept, "");
  EXPECT_GT(decision().speedup, LearnedChooser::kPromise);
  EXPECT_EQ(records::textOf(decision().otherwise), records::textOf(base));
  EXPECT_LT(model.asked, 600); // of 4410 candidates of the card alone
}

TEST_F(Choosers, SayWhichFeaturesMovedTheScore) {
  model.logarithm = [](auto &features) {
    return FakeModel::knob(features, "knob_m") == 5 ? 0 : 0.5;
  };
  choose(product());
  ASSERT_FALSE(decision().moved.empty());
  EXPECT_EQ(decision().moved.front().first, "knob_m");
  EXPECT_NEAR(decision().moved.front().second, std::exp(0.5), 1e-6);
  for (auto &[feature, factor] : ArrayRef(decision().moved).drop_front())
    EXPECT_EQ(factor, 1) << feature;
}

TEST_F(Choosers, KeepTheOtherChoiceWhereLittleIsPromised) {
  model.logarithm = [](auto &features) {
    return FakeModel::knob(features, "knob_m") == 5 ? 0 : 0.04;
  };
  graph::GroupOp group = product();
  EXPECT_EQ(records::textOf(choose(group)), records::textOf(ruled(group)));
  EXPECT_EQ(decision().kept, "too little is to be gained");
  EXPECT_NEAR(decision().speedup, std::exp(0.04), 1e-6);
  model.logarithm = [](auto &) { return NAN; };
  EXPECT_EQ(records::textOf(choose(group)), records::textOf(ruled(group)));
}

TEST_F(Choosers, KeepTheOtherChoiceBeyondWhatWasLearned) {
  model.logarithm = [](auto &features) { return FakeModel::knob(features, "knob_m") == 5 ? 0 : 1; };
  model.outside = [](auto &features) { return FakeModel::knob(features, "knob_m") == 5 ? 2 : 0; };
  graph::GroupOp group = product();
  EXPECT_EQ(records::textOf(choose(group)), records::textOf(ruled(group)));
  EXPECT_EQ(decision().kept, "2 of its features are outside of what the model has learned from");
}

TEST_F(Choosers, KeepTheOtherChoiceOfDynamicSizes) {
  model.logarithm = [](auto &features) { return -FakeModel::knob(features, "knob_m"); };
  graph::GroupOp group = product("?", ", #graph.dims<\"batch\", 64>");
  EXPECT_EQ(records::textOf(choose(group)), records::textOf(ruled(group)));
  EXPECT_EQ(decision().kept, "its sizes are not all constant");
  EXPECT_EQ(model.asked, 0);
}

TEST_F(Choosers, LeaveTunedGroupsAlone) {
  model.logarithm = [](auto &features) { return -FakeModel::knob(features, "knob_m"); };
  graph::GroupOp group = product();
  EXPECT_EQ(records::textOf(choose(group, /*isMeasured=*/true)), records::textOf(ruled(group)));
  EXPECT_EQ(decision().kept, "it was tuned");
}

TEST_F(Choosers, GoByTheOtherChoiceIfTheModelFails) {
  model.failure = "it ran out of luck";
  graph::GroupOp group = product();
  EXPECT_EQ(records::textOf(choose(group)), records::textOf(ruled(group)));
  EXPECT_EQ(decision().kept, "the cost model failed: it ran out of luck");
}

TEST_F(Choosers, TakeNoCardThatIsRefused) {
  cards.withdraw("matmul", "for this test");
  model.logarithm = [](auto &features) { return -FakeModel::knob(features, "knob_m"); };
  graph::GroupOp group = product();
  plan::Choice choice = choose(group);
  EXPECT_TRUE(!choice.card || choice.card->name != "matmul");
}

} // namespace
