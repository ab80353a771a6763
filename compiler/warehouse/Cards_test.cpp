// Cards_test: what the loader refuses and where it says so; offers; knobs on their way into a
// schedule.

#include "compiler/warehouse/Warehouse.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <gtest/gtest.h>

#include <fstream>

using namespace mlir;
using namespace heddle;
using warehouse::Card;
using warehouse::Warehouse;

namespace {

/// A card in lines 1 to 10; the tests replace a part of it.
constexpr StringLiteral kCard = R"(// A card.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 20 : i64, key = "p* { k:s(dot) }", max = {k = 64}}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8],
        heddle.default = 8 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
)";

constexpr StringLiteral kGroup = R"(
func.func @main(%x: tensor<2xKxf32>, %w: tensor<Kx4xf32>) -> tensor<2x4xf32> {
  %g = graph.group "dense" {mechanism = "contraction"} : tensor<2x4xf32> {
    %d = graph.matmul %x, %w : (tensor<2xKxf32>, tensor<Kx4xf32>) -> tensor<2x4xf32>
    graph.yield %d : tensor<2x4xf32>
  }
  return %g : tensor<2x4xf32>
})";

std::string replaced(StringRef text, StringRef part, StringRef with) {
  std::string result = text.str();
  for (size_t at = 0; (at = result.find(part, at)) != std::string::npos; at += with.size())
    result.replace(at, part.size(), with);
  return result;
}

class Cards : public testing::Test {
protected:
  Cards() {
    context.loadDialect<graph::GraphDialect, func::FuncDialect>();
    llvm::cantFail(Warehouse::load(context));
    llvm::sys::fs::createUniqueDirectory("heddle-cards", folder);
  }
  ~Cards() override { llvm::sys::fs::remove_directories(folder); }

  std::string write(StringRef name, StringRef text) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    std::ofstream(path.c_str()) << text.str();
    return path.str().str();
  }
  /// The loader's complaint about the card with `with` in place of `part`.
  std::string problemOf(StringRef part, StringRef with) {
    auto card = warehouse::parseCard(context, replaced(kCard, part, with), "x.mlir");
    return card ? "" : llvm::toString(card.takeError());
  }
  graph::GroupOp group(StringRef k = "3") {
    module = parseSourceString<ModuleOp>(replaced(kGroup, "K", k), &context);
    graph::GroupOp found;
    module->walk([&](graph::GroupOp op) { found = op; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  SmallString<128> folder;
};

TEST_F(Cards, haveTheKnobsOfTheirTarget) {
  std::string cuda = replaced(kCard, "\"cpu\"", "\"cuda\"");
  auto problem = [&](StringRef text, StringRef with) {
    auto card = warehouse::parseCard(context, replaced(text, "contract %group m", with), "x.mlir");
    return card ? "" : llvm::toString(card.takeError());
  };
  EXPECT_EQ(problem(cuda, "contract %group n"), "");
  EXPECT_EQ(problem(cuda, "rows %group threads"), "");
  EXPECT_EQ(problem(cuda, "rows %group rows"),
            "x.mlir:7:5: error: knob 'rows' of 'rows' is not for target 'cuda'; its knobs there: "
            "threads");
  EXPECT_EQ(problem(kCard, "rows %group threads"),
            "x.mlir:7:5: error: knob 'threads' of 'rows' is not for target 'cpu'; its knobs there: "
            "rows");
  EXPECT_EQ(problem(cuda, "attention_gradient %group m"),
            "x.mlir:7:5: error: mechanism 'attention_gradient' has no code for target 'cuda'");
}

TEST_F(Cards, ofADeviceAreOfferedWhereThereIsOne) {
  auto loaded = llvm::cantFail(Warehouse::load(context));
  auto answer = [&] {
    for (const warehouse::Offer &offer : loaded.offer(group()))
      if (offer.card->name == "cuda_product")
        return offer.refusal;
    return std::string("there is no such card");
  };
  EXPECT_EQ(answer(), "its target is 'cuda', and there is no such device");
  loaded.admit("cuda");
  EXPECT_EQ(answer(), "");
}

TEST_F(Cards, saysWhatIsWrongAndWhere) {
  EXPECT_EQ(problemOf("A card", "A good card"), "");
  EXPECT_EQ(
      problemOf("heddle.default = 8", "heddle.default = 7"),
      "x.mlir:5:7: error: the default of knob 'm' is 7, but 'heddle.knob' allows only [4, 8]");
  EXPECT_EQ(problemOf("\"cpu\"", "\"cpo\""),
            "x.mlir:2:1: error: unknown target 'cpo'; known: cpu, cuda");
  EXPECT_EQ(problemOf("priority", "priorty").substr(0, 82),
            "x.mlir:2:1: error: heddle.card has no field 'priorty'; did you mean 'priority'? fi");
  EXPECT_EQ(problemOf("{k = 64}", "{n = 64}"),
            "x.mlir:2:1: error: 'max' of heddle.card: 'n' is the letter of no loop of the key");
  EXPECT_EQ(problemOf("k:s(dot)", "k:s(dot").substr(0, 62),
            "x.mlir:2:1: error: key 'p* { k:s(dot }', at column 14: ')' is ");
  EXPECT_EQ(problemOf("heddle.card", "heddle.cart").substr(0, 62),
            "x.mlir:2:1: error: the module has no attribute 'heddle.card = ");
  EXPECT_EQ(problemOf("@schedule", "@scedule"),
            "x.mlir:4:3: error: 'transform.named_sequence' @scedule has no place in a card, which "
            "holds @schedule and @example");
  EXPECT_EQ(problemOf("heddle.knob = [4, 8],", "").substr(0, 40),
            "x.mlir:5:7: error: knob 'm' must be writ");
  EXPECT_EQ(problemOf(" m %m", " q %m"), "x.mlir:7:5: error: 'transform.heddle.contract' op has no "
                                         "knob 'q'; its knobs: m, n, panels, tiles");
  EXPECT_EQ(problemOf("transform.yield", "transform.yeld").substr(0, 18), "x.mlir:8:5: error:");
}

TEST_F(Cards, takeTheirNestFromTheirExample) {
  std::string text = replaced(kCard, ", key = \"p* { k:s(dot) }\", max = {k = 64}", "");
  EXPECT_EQ(llvm::toString(warehouse::parseCard(context, text, "x.mlir").takeError()),
            "x.mlir:2:1: error: heddle.card has neither 'key' nor 'nest', and there is no @example "
            "to take the nest from");
  text = StringRef(text).rtrim().drop_back().str() + R"(
    func.func @example(%x: tensor<?x3xf32, #graph.dims<"n", 3>>)
        -> tensor<?x1xf32, #graph.dims<"n", 1>> {
      %s = graph.reduce_sum %x {axes = array<i64: 1>, keep_dims = true}
        : (tensor<?x3xf32, #graph.dims<"n", 3>>) -> tensor<?x1xf32, #graph.dims<"n", 1>>
      return %s : tensor<?x1xf32, #graph.dims<"n", 1>>
    }
  })";
  Card card = llvm::cantFail(warehouse::parseCard(context, text, "x.mlir"));
  ASSERT_EQ(card.nests.size(), 1u);
  EXPECT_EQ(card.nests.front().str(), "m:p { n:s(sum) }");
}

/// A square, a sum of rows, a division by it, a negation.
constexpr StringLiteral kRows = R"(
!x = tensor<2x8xf32>
!s = tensor<2x1xf32>
func.func @main(%x: !x) -> !x {
  %g = graph.group "rows" {mechanism = "rows"} : !x {
    %q = graph.mul %x, %x : !x
    %s = graph.reduce_sum %q {axes = array<i64: 1>, keep_dims = true} : (!x) -> !s
    %r = graph.sqrt %s : !s
    %b = graph.broadcast %r : (!s) -> !x
    %d = graph.div %x, %b : !x
    %n = graph.neg %d : !x
    graph.yield %n : !x
  }
  return %g : !x
})";

TEST_F(Cards, mayForbidWhatStandsAroundTheirOps) {
  module = parseSourceString<ModuleOp>(kRows, &context);
  graph::GroupOp rows;
  module->walk([&](graph::GroupOp op) { rows = op; });
  auto ops = llvm::to_vector(llvm::make_pointer_range(rows.getBody().front().without_terminator()));
  auto cardWith = [&](StringRef fields) {
    std::string text = replaced(kCard, "key = \"p* { k:s(dot) }\", max = {k = 64}",
                                ("nest = \"m:p { n:s(sum) n:p(div) }\"" + fields).str());
    text = replaced(text, "contract %group m %m", "rows %group rows %m");
    return llvm::cantFail(warehouse::parseCard(context, text, "x.mlir"));
  };
  auto fitOf = [&](const Card &card, ArrayRef<Operation *> some) { return card.fit(some); };
  ArrayRef<Operation *> all(ops), named = all.slice(1, 4);
  EXPECT_EQ(cardWith("").refusal(rows), "");
  Card closed = cardWith(", prologue = false, epilogue = false");
  EXPECT_EQ(fitOf(closed, named), warehouse::Fit::Full); // the root between them is neither
  EXPECT_EQ(fitOf(closed, all.slice(0, 5)), warehouse::Fit::No);
  EXPECT_EQ(fitOf(closed, all.slice(1, 5)), warehouse::Fit::Partial);
  EXPECT_EQ(closed.refusal(rows),
            "op 'mul' of '-:6' is before what the card names, which its 'prologue = false' "
            "forbids");
  EXPECT_EQ(cardWith(", epilogue = false").refusal(rows),
            "op 'neg' of '-:11' is after what the card names, which its 'epilogue = false' "
            "forbids");
}

TEST_F(Cards, ofAUserReplaceTheBuiltInOnesOfTheirName) {
  std::string path = write("matmul.mlir", kCard);
  Warehouse loaded = llvm::cantFail(Warehouse::load(context, {folder.str().str()}));
  ASSERT_TRUE(loaded.find("matmul"));
  EXPECT_EQ(loaded.find("matmul")->path, path);
  EXPECT_EQ(loaded.cards().front().name, "matmul");
  EXPECT_TRUE(loaded.find("conv"));
}

TEST_F(Cards, tellAllProblemsOfAFolderAtOnce) {
  write("a.mlir", replaced(kCard, "cpu", "cpo"));
  write("b.mlir", "nonsense");
  auto loaded = Warehouse::load(context, {folder.str().str(), "/no/such/folder"});
  ASSERT_FALSE(!!loaded);
  std::string problems = llvm::toString(loaded.takeError());
  for (const char *part : {"a.mlir:2:1: error: unknown target 'cpo'", "b.mlir:1:1: error: ",
                           "cannot read the folder of cards '/no/such/folder'"})
    EXPECT_NE(problems.find(part), std::string::npos) << problems;
}

TEST_F(Cards, areOfferedByLoopsAndGuards) {
  Card card = llvm::cantFail(warehouse::parseCard(context, kCard, "x.mlir"));
  EXPECT_EQ(card.refusal(group("3")), "");
  EXPECT_EQ(card.refusal(group("65")), "k is 65, at most 64 is allowed");
  Warehouse loaded = llvm::cantFail(Warehouse::load(context));
  std::vector<std::string> offered;
  std::map<std::string, std::string> refused;
  for (const warehouse::Offer &offer : loaded.offer(group()))
    if (offer.isOffered())
      offered.push_back(offer.card->name);
    else
      refused[offer.card->name] = offer.refusal;
  EXPECT_EQ(offered, (std::vector<std::string>{"matmul", "onednn_matmul"}));
  EXPECT_EQ(refused["conv"], "loops 'm:p { n:p { k:s(dot) } }' are not 'p* { k:s { w+(dot) } }': "
                             "loop 's(dot)' has other ops than 'k:s'");
  EXPECT_EQ(refused["reduce_rows"],
            "loops 'm:p { n:p { k:s(dot) } }' are not 'p* { s+(max|min|sum|prod) }': "
            "loop 's(dot)' has other ops than 's+(max|min|sum|prod)'");
  EXPECT_EQ(refused["matmul_gates"], "no product of the group is read in parts");
  EXPECT_EQ(refused["matmul_rows"],
            "'stitch' cannot compute it: it is for a product and the reductions over its rows");
}

TEST_F(Cards, areWithdrawnForAReason) {
  Warehouse loaded = llvm::cantFail(Warehouse::load(context));
  loaded.withdraw("matmul", "it is a Monday");
  loaded.withdraw("conv", "it is a Monday");
  for (const warehouse::Offer &offer : loaded.offer(group()))
    if (offer.card->name == "matmul")
      EXPECT_EQ(offer.refusal, "it is a Monday");
    else if (offer.card->name == "conv") // is not for the group in the first place
      EXPECT_EQ(StringRef(offer.refusal).take_front(5), "loops");
}

TEST_F(Cards, sayWhichLoopIsNotTheirs) {
  auto refusalOf = [&](StringRef key) {
    std::string text = replaced(kCard, "p* { k:s(dot) }\", max = {k = 64}", (key + "\"").str());
    Card card = llvm::cantFail(warehouse::parseCard(context, text, "x.mlir"));
    std::string refusal = card.refusal(group());
    return StringRef(refusal).rsplit("': ").second.str();
  };
  EXPECT_EQ(refusalOf("m:p { k:s(dot) }"), "loop 'p' is no 'k:s(dot)'");
  EXPECT_EQ(refusalOf("m:p { n:p }"), "loop 's(dot)' is one more than the key has");
  EXPECT_EQ(refusalOf("p+ { k:s(max|sum) }"), "loop 's(dot)' has other ops than 'k:s(max|sum)'");
  EXPECT_EQ(refusalOf("p+ { k=4:s(dot) }"), "loop 's(dot)' has the size 3, not 4");
  EXPECT_EQ(refusalOf("p+ { k:s(dot) { w } }"), "there is no loop for 'w'");
}

TEST_F(Cards, writeTheScheduleAndTheirName) {
  Card card = llvm::cantFail(warehouse::parseCard(context, kCard, "x.mlir"));
  graph::GroupOp op = group();
  ASSERT_FALSE(!!warehouse::apply(card, op, {{"m", 4}}));
  auto schedule = op->getAttrOfType<DictionaryAttr>("schedule");
  ASSERT_TRUE(schedule);
  EXPECT_EQ(cast<StringAttr>(schedule.get("mechanism")).getValue(), "contraction");
  EXPECT_EQ(cast<IntegerAttr>(schedule.get("m")).getInt(), 4);
  EXPECT_EQ(op->getAttrOfType<StringAttr>("card").getValue(), "x");
  EXPECT_EQ(op->getAttrOfType<StringAttr>("card_hash").getValue(), card.hash);
  EXPECT_EQ(llvm::toString(warehouse::apply(card, op, {{"m", 5}})),
            "x.mlir: error: knob 'm' is 5, but card 'x' allows only [4, 8]");
  EXPECT_EQ(llvm::toString(warehouse::apply(card, op, {{"q", 5}})),
            "x.mlir: error: card 'x' has no knob 'q'; its knobs: m");
}

TEST_F(Cards, sayWhichKnobIsTooLarge) {
  Card card = llvm::cantFail(warehouse::parseCard(
      context, replaced(replaced(kCard, "[4, 8]", "[4, 257, -1]"), "= 8 :", "= 4 :"), "x.mlir"));
  auto problemWith = [&](int64_t m) {
    return llvm::toString(warehouse::apply(card, group(), {{"m", m}}));
  };
  EXPECT_EQ(problemWith(257), "group 'dense': card 'x' matched but could not be applied: error: "
                              "knob 'm' is 257, but must be from 0 to 256 (x.mlir)");
  EXPECT_EQ(problemWith(-1), "group 'dense': card 'x' matched but could not be applied: error: "
                             "knob 'm' is -1, but must be from 0 to 256 (x.mlir)");
  EXPECT_EQ(problemWith(4), "");
}

} // namespace
