// CardsFuzz_test: whatever a card's file holds, the loader takes it or says why not.

#include "compiler/warehouse/Builtin.h"
#include "compiler/warehouse/Warehouse.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace heddle;

namespace {

/// A card with all that a card may hold.
constexpr StringLiteral kFull = R"card(
module attributes {transform.with_named_sequence, heddle.card = {target = "cpu", priority = 3 : i64,
    nest = ["m:p* { n=8:s(sum) n:p(div|mul) }", "p*(*)"], dtypes = ["f32"], min = {n = 2},
    max = {n = 64}, prologue = false, epilogue = true}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %rows: !transform.param<i64> {transform.readonly, heddle.knob = [1, 2],
        heddle.default = 2 : i64}) {
    %c = transform.param.constant 4 : i64 -> !transform.param<i64>
    transform.heddle.rows %group rows %rows : !transform.any_op
    transform.yield
  }
  func.func @example(%x: tensor<?x8xf32, #graph.dims<"n", 8>> {heddle.range = [0, 4]})
      -> tensor<?x1xf32, #graph.dims<"n", 1>> {
    %s = graph.reduce_sum %x {axes = array<i64: 1>, keep_dims = true}
      : (tensor<?x8xf32, #graph.dims<"n", 8>>) -> tensor<?x1xf32, #graph.dims<"n", 1>>
    return %s : tensor<?x1xf32, #graph.dims<"n", 1>>
  }
}
)card";

/// Bytes that mean something to a parser are more often tried than others.
char byteOf(std::mt19937 &random) {
  constexpr StringLiteral kSyntax = "(){}[]<>\"%@#!=:,.-*|0129 \n";
  return random() % 4 ? kSyntax[random() % kSyntax.size()] : char(random() % 256);
}

std::string broken(StringRef text, std::mt19937 &random) {
  std::string result = text.str();
  for (size_t change = 0, changes = 1 + random() % 4; change < changes && !result.empty();
       ++change) {
    size_t at = random() % result.size(), length = random() % 24;
    switch (random() % 5) {
    case 0:
      result[at] = byteOf(random);
      break;
    case 1:
      result.insert(result.begin() + at, byteOf(random));
      break;
    case 2:
      result.erase(at, length);
      break;
    case 3: // a piece of it is elsewhere too
      result.insert(random() % result.size(), result.substr(at, length));
      break;
    default:
      result[at] ^= char(1 << random() % 8);
    }
  }
  if (random() % 8 == 0)
    result.resize(random() % (result.size() + 1));
  return result;
}

TEST(CardsFuzz, everyTextIsTakenOrRefusedWithAReason) {
  constexpr int kCases = 2000;
  std::mt19937 random(7);
  std::vector<StringRef> texts(8, kFull); // as likely as all others together
  for (const warehouse::BuiltinCard &card : warehouse::builtinCards())
    texts.push_back(card.text);
  int taken = 0;
  std::unique_ptr<MLIRContext> context;
  for (int number = 0; number < kCases; ++number) {
    if (number % 100 == 0) { // so that what a context keeps stays small
      context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
      DialectRegistry registry;
      warehouse::registerDialects(registry);
      context->appendDialectRegistry(registry);
      context->loadAllAvailableDialects();
    }
    std::string text = broken(texts[random() % texts.size()], random);
    auto card = warehouse::parseCard(*context, text, "x.mlir");
    taken += !!card;
    std::string problem = card ? "" : llvm::toString(card.takeError());
    if (!card)
      EXPECT_TRUE(StringRef(problem).starts_with("x.mlir:")) << problem << "\n" << text;
  }
  EXPECT_GT(taken, kCases / 50); // changes of comments, numbers and names
  EXPECT_LT(taken, kCases / 2);
}

TEST(CardsFuzz, theUnbrokenCardIsTaken) {
  MLIRContext context;
  DialectRegistry registry;
  warehouse::registerDialects(registry);
  context.appendDialectRegistry(registry);
  auto card = warehouse::parseCard(context, kFull, "x.mlir");
  ASSERT_TRUE(!!card) << llvm::toString(card.takeError());
  EXPECT_EQ(card->nests.size(), 2u);
  EXPECT_FALSE(card->hasPrologue);
}

TEST(CardsFuzz, nestingAndSizeAreBounded) {
  MLIRContext context;
  auto problemOf = [&](const std::string &text) {
    auto card = warehouse::parseCard(context, text, "x.mlir");
    return card ? "" : llvm::toString(card.takeError());
  };
  for (const char *deep : {"[", "{", "(", "<", "-", "- ", "(() -> "}) {
    std::string text = "module attributes {x = ";
    for (int i = 0; i < 30000; ++i)
      text += deep;
    EXPECT_EQ(problemOf("\n" + text), "x.mlir:2: error: brackets are nested more than 128 deep");
  }
  EXPECT_EQ(problemOf(std::string((1 << 20) + 1, ' ')),
            "x.mlir: error: it has 1048577 bytes, but a card has at most 1048576");
}

} // namespace
