// feeds_test: wrong feeds give one message with all that is wrong. SPDX-License-Identifier:
// Apache-2.0
#include "runtime/session/testing.h"

namespace {

struct Feeds : testing::Test {
  TestSession session{increment_executable};
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, z = {10, 20}, y = std::vector<float>(8);
  std::vector<heddle_tensor_t> inputs = {tensorOver(x, {2, 4}), tensorOver(z, {2})};
  std::vector<heddle_tensor_t> outputs = {tensorOver(y, {})};

  /// The message of a run that must be the caller's mistake.
  std::string mistake() {
    heddle_code_t code;
    std::string message = session.run(inputs, outputs, &code);
    EXPECT_EQ(code, HEDDLE_USAGE);
    return message;
  }
};

TEST_F(Feeds, CountAndWhatIsTaken) {
  inputs.pop_back();
  EXPECT_EQ(mistake(), "model 'increment': wrong inputs:\n  1 inputs given, but it takes 2: "
                       "'x' float32[batch,4], 'z' float32[batch]");
}

TEST_F(Feeds, AllMistakesInOneMessage) {
  inputs[0].dims[1] = 3;
  inputs[1].dtype = HEDDLE_FLOAT64;
  EXPECT_EQ(mistake(), "model 'increment': wrong inputs:\n"
                       "  input 'x': its shape is [2,3], but [batch,4] is allowed\n"
                       "  input 'z': its dtype is float64 (11), but float32 (1) is allowed");
}

TEST_F(Feeds, SymbolsMustAgree) {
  inputs[1].dims[0] = 1;
  EXPECT_EQ(mistake(), "model 'increment': wrong inputs:\n  'batch' is 2 in dim 0 of input 'x', "
                       "but 1 in dim 0 of input 'z'; they must agree");
}

TEST_F(Feeds, RankNegativeAndHugeSizes) {
  inputs[0].rank = 99;
  EXPECT_NE(mistake().find("input 'x': its rank is 99, but 2 is allowed"), std::string::npos);
  inputs[0].rank = 2;
  inputs[0].dims[0] = -2;
  EXPECT_NE(mistake().find("input 'x': its shape is [-2,4], but"), std::string::npos);
  inputs[0].dims[0] = INT64_MAX / 2;
  EXPECT_NE(mistake().find("is larger than an address space"), std::string::npos);
}

TEST_F(Feeds, DataMustBeThereLargeEnoughAndAligned) {
  inputs[0].data = nullptr;
  inputs[1].bytes = 7;
  EXPECT_EQ(mistake(), "model 'increment': wrong inputs:\n  input 'x': its data is NULL\n"
                       "  input 'z': its buffer has 7 bytes, but its shape needs 8");
  inputs[0].data = reinterpret_cast<char *>(x.data()) + 1;
  EXPECT_NE(mistake().find("input 'x': its data is not aligned for float32"), std::string::npos);
}

TEST_F(Feeds, OutputsMustFitAndStandApart) {
  outputs[0].bytes = 31;
  EXPECT_EQ(mistake(), "model 'increment': wrong outputs:\n"
                       "  output 'y': its buffer has 31 bytes, but it needs 32");
  outputs[0] = tensorOver(x, {});
  outputs[0].data = x.data() + 1;
  EXPECT_EQ(mistake(), "model 'increment': wrong outputs:\n"
                       "  output 'y': its buffer overlaps input 'x'");
  std::vector<float> both(8, 3.f);
  inputs[1] = tensorOver(both, {2});
  outputs[0] = tensorOver(both, {});
  EXPECT_EQ(mistake(), "model 'increment': wrong outputs:\n"
                       "  output 'y': its buffer overlaps input 'z'");
  outputs.clear();
  EXPECT_NE(mistake().find("0 outputs given, but it has 1"), std::string::npos);
}

TEST_F(Feeds, OutputsMayTakeThePlaceOfTheInputThatTheyShare) {
  outputs[0] = tensorOver(x, {});
  EXPECT_EQ(session.run(inputs, outputs), "");
  EXPECT_EQ(x, (std::vector<float>{12, 13, 14, 15, 26, 27, 28, 29}));
}

TEST(FeedsOfStrings, NeedTheirBytes) {
  TestSession session(twisted_executable);
  std::vector<float> x(3);
  std::vector<heddle_string_t> picks = {{"cat", 3}, {nullptr, 0}, {nullptr, 2}};
  std::vector<heddle_tensor_t> outputs(2);
  EXPECT_EQ(session.run({tensorOver(x, {3}), tensorOver(picks, {3})}, outputs),
            "model 'twisted': wrong inputs:\n  input 'picks': the data of string 2 is NULL");
}

} // namespace
