// SizesTest: penalties, the part shared by all sizes, and the sizes that are asked for.

#include "compiler/tuner/joint/Sizes.h"

#include <gtest/gtest.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::tuner;
using warehouse::KnobValues;

namespace {

KnobValues tile(int64_t m, int64_t n) { return {{"m", m}, {"n", n}}; }

TEST(Penalty, CountsWhatIsPadded) {
  Shape shape{1, 1, 1, 24, 24};
  EXPECT_DOUBLE_EQ(penaltyOf(shape, tile(8, 24), 1), 1);
  EXPECT_DOUBLE_EQ(penaltyOf(shape, tile(8, 48), 1), 0.5);
  EXPECT_DOUBLE_EQ(penaltyOf(shape, tile(14, 24), 1), 24.0 / 28);
  shape.rows = 17; // a tile of 12, and of the 5 that are left one of 6
  EXPECT_DOUBLE_EQ(penaltyOf(shape, tile(12, 24), 1), 17.0 / 18);
  shape.rows = 13; // one row is left
  EXPECT_DOUBLE_EQ(penaltyOf(shape, tile(12, 24), 1), 1);
  EXPECT_DOUBLE_EQ(penaltyOf({1, 1, 3, 8, 24}, tile(8, 24), 2), 0.75) << "three tiles, two workers";
  EXPECT_DOUBLE_EQ(penaltyOf({}, {}, 1), 1) << "no product";
}

class JointSearch : public testing::Test {
protected:
  JointSearch() {
    card.knobs = {{"m", {1, 2, 4, 8, 14}, 8}, {"n", {16, 32, 48, 64}, 48}};
    for (int64_t size : {5, 16, 24, 48, 128})
      shapes.push_back({1e3 * static_cast<double>(size), 1, 64, size, size});
  }

  /// A machine on which tiles of 32 columns are the fastest, but for their padding.
  static double secondsOf(const Shape &shape, const KnobValues &knobs) {
    double speed = knobs.at("n") == 32 ? 1.1e9 : 1e9;
    return shape.flops / (speed * penaltyOf(shape, knobs, 1));
  }

  std::vector<JointPoint> points() const {
    std::vector<JointPoint> points;
    for (const Shape &shape : shapes)
      points.push_back({shape, tile(8, 48), tile(8, 48)});
    for (size_t i = 0; i < alone.size(); ++i)
      points[i].alone = alone[i];
    return points;
  }

  Joint search(uint64_t seed, int64_t trials) {
    Joint joint(card, points(), program::Machine(), seed);
    for (int64_t i = 0; i < trials; ++i)
      if (auto trial = joint.next()) {
        order.push_back(trial->knobs);
        EXPECT_EQ(trial->shape, joint.bestShapeOf(trial->knobs));
        joint.tell(*trial, secondsOf(shapes[trial->shape], trial->knobs));
      }
    return joint;
  }

  warehouse::Card card;
  std::vector<Shape> shapes;
  std::vector<KnobValues> alone, order;
};

TEST_F(JointSearch, SharesWhatIsMeasured) {
  Joint joint = search(1, 64);
  EXPECT_EQ(order.front(), tile(8, 48)) << "the default is first";
  for (size_t i = 0; i < shapes.size(); ++i) {
    double predicted = joint.speedOf(i, tile(8, 48));
    EXPECT_NEAR(predicted, shapes[i].flops / secondsOf(shapes[i], tile(8, 48)), 1);
  }
  std::vector<KnobValues> decided = joint.decide(4);
  EXPECT_EQ(decided[0].at("n"), 16);
  EXPECT_EQ(decided[2].at("n"), 32);
  EXPECT_EQ(decided[4].at("n"), 32);
  EXPECT_LE(std::set<KnobValues>(decided.begin(), decided.end()).size(), 4u);
  std::vector<KnobValues> wanted = joint.wanted(4, tile(8, 48), 1.3);
  EXPECT_EQ(wanted[0], decided[0]) << "three times less padding";
  EXPECT_EQ(wanted[4], tile(8, 48)) << "a quarter is not enough";
  EXPECT_GT(joint.gainOf(wanted), 1.2);
  EXPECT_DOUBLE_EQ(joint.gainOf(std::vector(shapes.size(), tile(8, 48))), 1);
  decided = joint.decide(1);
  EXPECT_EQ(std::set<KnobValues>(decided.begin(), decided.end()).size(), 1u);
}

TEST_F(JointSearch, TriesFirstWhatRulesHaveForOneShape) {
  alone = {tile(4, 16), tile(14, 16), tile(14, 32), tile(8, 48)};
  alone.push_back(tile(14, 64)); // too large for the registers
  search(1, 8);
  order.resize(4);
  EXPECT_EQ(order, (std::vector<KnobValues>{tile(8, 48), tile(14, 32), tile(14, 16), tile(4, 16)}));
}

TEST_F(JointSearch, OneShapeHasCandidatesOfItsOwn) {
  Joint joint = search(1, 64);
  auto candidates = joint.candidatesAt(4, tile(8, 32), 3);
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0], tile(8, 32));
  EXPECT_EQ(candidates[1], tile(4, 32));
  EXPECT_EQ(candidates[2].at("n"), 32) << "what is predicted to be next";
  EXPECT_NE(joint.candidatesAt(4, tile(8, 48), 3).front(), tile(8, 48)) << "that is the default's";
  EXPECT_EQ(joint.heaviestFirst({0, 2, 4}), (std::vector<size_t>{4, 2, 0}));
}

TEST_F(JointSearch, GoesFarFromWhereItBegins) {
  card.knobs.push_back({"panels", {0, 1, 2, 4, 8, 16, 32}, 0});
  search(1, 32);
  std::set<int64_t> panels;
  for (const KnobValues &knobs : order)
    if (knobs.count("panels"))
      panels.insert(knobs.at("panels"));
  EXPECT_GE(panels.size(), 6u);
}

TEST_F(JointSearch, FollowsFromTheSeed) {
  search(3, 16);
  auto first = std::exchange(order, {});
  search(3, 16);
  EXPECT_EQ(order, first);
}

TEST_F(JointSearch, WithoutASpeedTheDefaultsStay) {
  Joint joint(card, points(), program::Machine(), 1);
  joint.tell({tile(8, 48), 0}, 0);
  EXPECT_EQ(joint.decide(4)[1], tile(8, 48));
}

TEST(Sizes, FirstMiddleAndLastAreConfirmed) {
  std::vector<KnobValues> knobs(32, tile(1, 16));
  std::fill(knobs.begin() + 9, knobs.end(), tile(2, 16));
  EXPECT_EQ(toConfirm(knobs), (std::vector<size_t>{0, 4, 8, 9, 13, 17, 20, 24, 28, 31}));
  EXPECT_EQ(toConfirm(llvm::ArrayRef(knobs).take_front(8)).size(), 8u) << "all of a few";
}

TEST(Sizes, AreListsRangesAndFiles) {
  Over over;
  ASSERT_FALSE(addOver("seq=24,5:0.25", over));
  ASSERT_FALSE(addOver("batch=1..3", over));
  auto instances = instancesOf(over, {"batch", "other", "seq"});
  ASSERT_EQ(instances.size(), 6u);
  EXPECT_EQ(instances[0].sizes, (trial::Sizes{{"batch", 1}, {"seq", 5}}));
  EXPECT_EQ(instances[0].weight, 0.25);
  EXPECT_EQ(instancesOf(over, {"other"}).size(), 1u);
  EXPECT_EQ(instancesOf(over, {"seq", "batch"}, 3).size(), 3u);

  std::string path = "lengths." + std::to_string(getpid());
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << "7 9\n7\n";
  Over observed;
  ASSERT_FALSE(addOver("seq=@" + path, observed));
  unlink(path.c_str());
  ASSERT_EQ(observed["seq"].size(), 2u);
  EXPECT_EQ(observed["seq"][0].weight, 2);

  auto refusal = [](const char *text) {
    Over none;
    return llvm::toString(addOver(text, none));
  };
  for (const char *wrong : {"seq", "seq=", "=4", "seq=0", "seq=9..3", "seq=4:-1", "seq=x"})
    EXPECT_EQ(refusal(wrong),
              "error: '" + std::string(wrong) +
                  "' gives no sizes to tune over; write NAME=SIZES, where SIZES are "
                  "as in 5,24:0.2,43 (with weights), 1..128 or @FILE of observed "
                  "sizes");
  EXPECT_EQ(refusal("seq=@no/such/file"),
            "error: cannot read the sizes of 'seq' from 'no/such/file': No such file or directory");
}

} // namespace
