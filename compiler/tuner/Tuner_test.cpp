// Tuner_test: a search visits what is near the best first, and goes on where another one ended.

#include "compiler/records/Records.h"
#include "compiler/support/Error.h"
#include "compiler/tuner/Comparison.h"
#include "compiler/tuner/Search.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
  Search search({&tile, &flat}, base, 1);
  search.tell(base, 1);
  std::vector<std::string> texts = finish(search);
  EXPECT_EQ(texts.front(), "flat@1 chunk=1"); // each card is tried before any knob
  EXPECT_NE(llvm::find(texts, "tile@1 m=8 n=32"), texts.end());
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::unique(texts.begin(), texts.end()), texts.end()) << "none is tried twice";
}

TEST_F(Searches, FollowFromTheSeed) {
  Search one({&tile, &flat}, base, 7), same({&tile, &flat}, base, 7),
      other({&tile, &flat}, base, 8);
  for (Search *search : {&one, &same, &other})
    search->tell(base, 1);
  auto texts = finish(one);
  EXPECT_EQ(finish(same), texts);
  EXPECT_NE(finish(other), texts);
}

TEST_F(Searches, GoOnWhereAnotherOneEnded) {
  Search first({&tile, &flat}, base, 3);
  first.tell(base, 1);
  finish(first);
  Search second({&tile, &flat}, base, 3);
  second.tell(base, 1);
  for (const Choice &choice : std::vector<Choice>(known))
    second.tell(choice, speedupOf(choice));
  EXPECT_TRUE(finish(second).empty());
}

TEST(Efforts, ShareTheTimeThatIsLeft) {
  EXPECT_EQ(decideSizeWithin(100, 4).seconds, kDecideSize.seconds);
  Effort less = decideSizeWithin(8, 10);
  EXPECT_LT(less.seconds, kDecideSize.seconds);
  EXPECT_TRUE(less.isFinal);
  EXPECT_GT(decideSizeWithin(0, 0).seconds, 0);
}

} // namespace
