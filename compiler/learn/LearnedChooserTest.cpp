// LearnedChooserTest: when a cost model is followed, and when the other chooser is.

#include "compiler/learn/LearnedChooser.h"
#include "compiler/learn/GroupText.h"
#include "compiler/learn/Scorer.h"
#include "compiler/records/GroupKey.h"
#include "compiler/records/Records.h"
#include "compiler/support/Error.h"
#include "compiler/warehouse/Warehouse.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace heddle;
using learn::LearnedChooser;

namespace {

/// Says of each candidate what a function of its features says.
class FakeModel : public learn::Model {
public:
  llvm::Expected<Scores> score(const learn::GroupFeatures &group,
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
    std::vector<std::string> names = learn::candidateNames();
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
      %g = graph.group "dense" {mechanism = "contraction"} : )" +
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
  const learn::Decision &decision() { return chooser->decisions().at("dense"); }

  MLIRContext context;
  warehouse::Warehouse cards;
  plan::DefaultChooser byRule;
  FakeModel model;
  std::optional<LearnedChooser> chooser;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Choosers, FollowAModelThatPromisesMore) {
  model.logarithm = [](auto &features) { // least at panels = 2 and tiles = 16
    return std::abs(FakeModel::knob(features, "knob_panels") - 2) / 10 +
           std::abs(FakeModel::knob(features, "knob_tiles") - 16) / 20;
  };
  graph::GroupOp group = product();
  plan::Choice base = ruled(group), choice = choose(group);
  EXPECT_EQ(choice.card, base.card);
  EXPECT_EQ(choice.knobs.at("panels"), 2);
  EXPECT_EQ(choice.knobs.at("tiles"), 16);
  for (auto &[name, value] : choice.knobs)
    EXPECT_TRUE(choice.card->knob(name)->allows(value)) << name;
  EXPECT_EQ(decision().kept, "");
  EXPECT_NEAR(decision().speedup, std::exp(0.2 + 0.8), 1e-3);
  EXPECT_EQ(records::textOf(decision().otherwise), records::textOf(base));
  EXPECT_LT(model.asked, 600); // the card alone has 4410 candidates
}

TEST_F(Choosers, TakeNothingThatARooflineFindsWorse) {
  graph::GroupOp group = product();
  plan::Choice base = ruled(group);
  // Tiles of one row, of half a vector, and of more registers than there are.
  for (auto [knob, value] :
       {std::pair("knob_m", 1), std::pair("knob_n", 8), std::pair("knob_m", 14)}) {
    model.logarithm = [knob = knob, value = value](auto &features) {
      return FakeModel::knob(features, knob) == value ? -2.0 : 0.0;
    };
    plan::Choice choice = choose(group);
    auto taken = choice.knobs.at(knob + strlen("knob_"));
    if (taken == value) { // with another tile, which makes it as good
      learn::Candidate old{"contraction", true, base.knobs},
          made{"contraction", true, choice.knobs};
      std::vector<double> before = learn::featuresOf(group, old, {}),
                          after = learn::featuresOf(group, made, {});
      for (StringRef feature : {"padded_flops", "vector_loads", "register_spill"})
        EXPECT_LE(FakeModel::at(after, feature), FakeModel::at(before, feature) + 0.31)
            << feature.str();
    }
  }
  model.logarithm = [](auto &features) { // a tile of one vector, and of one row
    return FakeModel::knob(features, "knob_m") == 1 && FakeModel::knob(features, "knob_n") == 16
               ? -2.0
               : 0.0;
  };
  EXPECT_EQ(records::textOf(choose(group)), records::textOf(base));
}

TEST_F(Choosers, SayWhichFeaturesMovedTheScore) {
  model.logarithm = [](auto &features) {
    return FakeModel::knob(features, "knob_tiles") == 8 ? 0 : 0.5;
  };
  choose(product());
  ASSERT_FALSE(decision().moved.empty());
  EXPECT_EQ(decision().moved.front().first, "knob_tiles");
  EXPECT_NEAR(decision().moved.front().second, std::exp(0.5), 1e-6);
  for (auto &[feature, factor] : ArrayRef(decision().moved).drop_front())
    EXPECT_EQ(factor, 1) << feature;
}

TEST_F(Choosers, RoundFactorsWhereTheyMay) {
  model.logarithm = [](auto &features) { return FakeModel::at(features, "has_bf16") ? -1 : 0; };
  program::Machine machine;
  machine.shortFloats = program::ShortFloats::Native;
  graph::GroupOp group = product();
  auto chosen = [&](bool mayRound) {
    chooser.emplace(model, byRule, [](graph::GroupOp) { return false; }, mayRound);
    return llvm::cantFail(chooser->choose(group, cards.offer(group), machine));
  };
  EXPECT_FALSE(chosen(false).isShort);
  plan::Choice choice = chosen(true);
  EXPECT_TRUE(choice.isShort);
  EXPECT_EQ(choice.whyPrecision, "the cost model says so");
  EXPECT_EQ(decision().moved.front().first, "has_bf16");
  model.outside = [](auto &features) { return FakeModel::at(features, "has_bf16"); };
  EXPECT_FALSE(chosen(true).isShort) << "a model of f32 alone";
  model.outside = [](auto &) { return 0; };
  machine.shortFloats = program::ShortFloats::None;
  EXPECT_FALSE(chosen(true).isShort);
}

TEST_F(Choosers, KeepTheOtherChoiceWhereLittleIsPromised) {
  model.logarithm = [](auto &features) {
    return FakeModel::knob(features, "knob_tiles") == 8 ? 0 : 0.04;
  };
  graph::GroupOp group = product();
  EXPECT_EQ(records::textOf(choose(group)), records::textOf(ruled(group)));
  EXPECT_EQ(decision().kept, "too little is to be gained");
  EXPECT_NEAR(decision().speedup, std::exp(0.04), 1e-6);
  model.logarithm = [](auto &) { return NAN; };
  EXPECT_EQ(records::textOf(choose(group)), records::textOf(ruled(group)));
}

TEST_F(Choosers, KeepTheOtherChoiceBeyondWhatWasLearned) {
  model.logarithm = [](auto &features) {
    return FakeModel::knob(features, "knob_tiles") == 8 ? 0 : 1;
  };
  model.outside = [](auto &features) {
    return FakeModel::knob(features, "knob_tiles") == 8 ? 2 : 0;
  };
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

TEST_F(Choosers, ScoreAllThatACardAllows) {
  graph::GroupOp group = product();
  const warehouse::Card *card = cards.find("matmul");
  ASSERT_TRUE(card);
  EXPECT_TRUE(learn::isJudged(*card));
  EXPECT_FALSE(learn::isJudged(*cards.find("onednn_matmul")));
  size_t count = 1;
  for (const warehouse::Knob &knob : card->knobs)
    count *= knob.domain.size();
  std::vector<plan::Choice> all = learn::productOf(*card, 2, count, 0);
  std::set<warehouse::KnobValues> distinct;
  for (const plan::Choice &choice : all)
    distinct.insert(choice.knobs);
  EXPECT_EQ(distinct.size(), count);
  std::vector<plan::Choice> some = learn::productOf(*card, 2, 100, 1);
  EXPECT_EQ(some.size(), 100u);
  for (const plan::Choice &choice : some)
    EXPECT_TRUE(distinct.count(choice.knobs));
  model.logarithm = [](auto &features) { return FakeModel::knob(features, "knob_m"); };
  auto scored = llvm::cantFail(learn::Scorer(model, group, {}).scored(some));
  for (auto [choice, each] : llvm::zip(some, scored))
    EXPECT_EQ(each.logarithm, double(choice.knobs.at("m")));
}

TEST_F(Choosers, ReadGroupsFromTheTextsOfRecords) {
  graph::GroupOp group = product("?", ", #graph.dims<\"batch\", 64>");
  records::GroupKey key = records::keyOf(group);
  auto text = llvm::cantFail(learn::parseGroup(context, key.text));
  graph::GroupOp read = learn::groupOf(*text);
  ASSERT_TRUE(read);
  EXPECT_FALSE(estimate::hasConstantSizes(read));
  learn::setSizes(*text, {100});
  ASSERT_TRUE(estimate::hasConstantSizes(read));
  learn::Candidate candidate{"contraction", true, {{"m", 6}}};
  std::vector<double> fixed = learn::featuresOf(product(), candidate, {});
  EXPECT_EQ(FakeModel::at(learn::featuresOf(read, candidate, {}), "rows"),
            FakeModel::at(fixed, "rows"));
  auto damaged = learn::parseGroup(context, "module { nothing }");
  EXPECT_FALSE(damaged);
  llvm::consumeError(damaged.takeError());
}

TEST_F(Choosers, TakeNoCardThatIsRefused) {
  cards.withdraw("matmul", "for this test");
  model.logarithm = [](auto &features) { return -FakeModel::knob(features, "knob_m"); };
  graph::GroupOp group = product();
  plan::Choice choice = choose(group);
  EXPECT_TRUE(!choice.card || choice.card->name != "matmul");
}

} // namespace
