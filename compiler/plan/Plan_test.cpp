// Plan_test: a plan reads as it was written, says what is wrong in it, and is replayed; the rules
// of knobs.

#include "compiler/graph/Typical.h"
#include "compiler/plan/NarrowRule.h"
#include "compiler/plan/PlansTest.h"
#include "compiler/plan/WinogradRule.h"

#include <regex>

using namespace mlir;
using namespace heddle;
using plan::Plan;
using plan::Plans;
using warehouse::KnobValues;

namespace {

TEST_F(Plans, readAsTheyWereWritten) {
  Plan written = llvm::cantFail(chosen(product(), byRule));
  ASSERT_EQ(written.groups.size(), 2u);
  EXPECT_EQ(written.groups[0].ops, (std::vector<std::string>{"dot_1", "exp_1"}));
  EXPECT_EQ(written.groups[0].card, "matmul");
  EXPECT_EQ(written.groups[1].card, "reduce_rows");
  written.groups[0].parts = {{"dot_1", {0, 2}}, {"exp_1", {1}}};
  written.groups[0].mechanism = "contraction";
  written.groups[0].measured = {{"error", 1e-3}, {"saved", 2.5e-6}};
  written.integers = {"dot_1"};
  std::string text = written.str();
  EXPECT_EQ(StringRef(text).count('\n'), 6u) << text;
  Plan read = llvm::cantFail(plan::parsePlan(text, "p.json"));
  EXPECT_EQ(read.str(), text);
  EXPECT_EQ(read.groups[0].knobs, written.groups[0].knobs);
  EXPECT_EQ(read.groups[0].parts, written.groups[0].parts);
  EXPECT_EQ(read.groups[0].measured, written.groups[0].measured);
  EXPECT_EQ(read.integers, written.integers);
}

TEST_F(Plans, areReplayed) {
  Plan wish = llvm::cantFail(chosen(product(), byRule));
  wish.groups[0].knobs = {{"m", 4}, {"n", 32}};
  wish.groups[1].card = wish.groups[1].cardHash = "";
  wish.groups[1].knobs.clear();
  plan::PlanChooser chooser(wish, byRule);
  func::FuncOp function = product();
  Plan result = llvm::cantFail(chosen(function, chooser));
  EXPECT_EQ(result.groups[0].knobs["m"], 4);
  EXPECT_EQ(result.groups[1].card, "");
  std::vector<bool> scheduled;
  function.walk([&](graph::GroupOp op) { scheduled.push_back(op->hasAttr("schedule")); });
  EXPECT_EQ(scheduled, (std::vector<bool>{true, false}));
}

constexpr StringLiteral kOpenAttention = R"(
#tokens = #graph.dims<"seq", "64">
#scores = #graph.dims<"seq", "seq">
#row = #graph.dims<"seq", "1">
func.func @main(%q: tensor<?x64xf32, #tokens>, %k: tensor<64x?xf32, #graph.dims<"64", "seq">>,
                %v: tensor<?x64xf32, #tokens>) -> tensor<?x64xf32, #tokens> {
  %g = graph.group "y" {mechanism = "attention"} : tensor<?x64xf32, #tokens> {
    %s = graph.matmul %q, %k : (tensor<?x64xf32, #tokens>,
      tensor<64x?xf32, #graph.dims<"64", "seq">>) -> tensor<?x?xf32, #scores>
    %largest = graph.reduce_max %s {axes = array<i64: 1>, keep_dims = true}
      : (tensor<?x?xf32, #scores>) -> tensor<?x1xf32, #row>
    %most = graph.broadcast %largest : (tensor<?x1xf32, #row>) -> tensor<?x?xf32, #scores>
    %less = graph.sub %s, %most : tensor<?x?xf32, #scores>
    %e = graph.exp %less : tensor<?x?xf32, #scores>
    %sum = graph.reduce_sum %e {axes = array<i64: 1>, keep_dims = true}
      : (tensor<?x?xf32, #scores>) -> tensor<?x1xf32, #row>
    %all = graph.broadcast %sum : (tensor<?x1xf32, #row>) -> tensor<?x?xf32, #scores>
    %p = graph.div %e, %all : tensor<?x?xf32, #scores>
    %y = graph.matmul %p, %v : (tensor<?x?xf32, #scores>, tensor<?x64xf32, #tokens>)
      -> tensor<?x64xf32, #tokens>
    graph.yield %y : tensor<?x64xf32, #tokens>
  }
  return %g : tensor<?x64xf32, #tokens>
})";

TEST_F(Plans, haveNarrowerPanelsForFewKeysAndForTwoPanels) {
  module = parseSourceString<ModuleOp>(kOpenAttention, &context);
  Plan made = llvm::cantFail(chosen(module->lookupSymbol<func::FuncOp>("main"), byRule));
  std::vector<std::pair<int64_t, int64_t>> found;
  for (const plan::Version &version : made.groups[0].versions)
    found.push_back({version.when.at("seq"), version.knobs.at("n")});
  EXPECT_EQ(found, (std::vector<std::pair<int64_t, int64_t>>{
                       {16, 16}, {32, 32}, {48, 48}, {64, 64}, {96, 48}}));
  EXPECT_EQ(made.groups[0].knobs["n"], 64);
}

/// The attention of so many tokens.
static std::string knownAttention(const std::string &tokens) {
  std::string text =
      std::regex_replace(kOpenAttention.str(), std::regex(", #(graph\\.dims<[^>]*>|[a-z]+)>"), ">");
  return std::regex_replace(text, std::regex("\\?"), tokens);
}

TEST_F(Plans, multiplyMatricesInAttentionOfMoreThanFewQueries) {
  plan::ShortChooser shortly(byRule);
  program::Machine machine;
  machine.shortFloats = program::ShortFloats::Native;
  machine.hasMatrices = true;
  auto first = [&](const std::string &text, int64_t typical = 0) {
    module = parseSourceString<ModuleOp>(text, &context);
    if (typical)
      EXPECT_EQ(graph::setTypicalSizes(*module, {"seq=" + std::to_string(typical)}), "");
    auto function = module->lookupSymbol<func::FuncOp>("main");
    return llvm::cantFail(chosen(function, shortly, machine)).groups[0];
  };
  for (const std::string &text : {kOpenAttention.str(), knownAttention("128")}) {
    plan::GroupPlan made = first(text);
    EXPECT_TRUE(made.isShort && made.versions.empty());
    EXPECT_TRUE(made.knobs["m"] == 32 && made.knobs["n"] == 32);
  }
  plan::GroupPlan few = first(knownAttention("8"));
  EXPECT_FALSE(few.isShort);
  EXPECT_EQ(few.whyPrecision, "few queries read keys and values of f32 where they lie");
  plan::GroupPlan often = first(kOpenAttention.str(), 1);
  EXPECT_TRUE(often.isShort && often.knobs["m"] == 32) << "many queries take time, few do not";
}

TEST_F(Plans, haveNarrowPanelsOfKeysWhereFewSumsHideTheirLatency) {
  auto tile = [&](const std::string &keys, int64_t fmas) {
    module = parseSourceString<ModuleOp>(knownAttention(keys), &context);
    program::Machine machine;
    machine.fmas = fmas;
    Plan made = llvm::cantFail(chosen(module->lookupSymbol<func::FuncOp>("main"), byRule, machine));
    return std::pair(made.groups[0].knobs["m"], made.groups[0].knobs["n"]);
  };
  using Tile = std::pair<int64_t, int64_t>;
  EXPECT_EQ(tile("128", 1), Tile(4, 16));
  EXPECT_EQ(tile("128", 2), Tile(6, 64));
  EXPECT_EQ(tile("512", 1), Tile(6, 64));
}

constexpr StringLiteral kOpenProduct = R"(
#seq = #graph.dims<"seq", "seq">
func.func @main(%x: tensor<?x64xf32, #graph.dims<"seq", "64">>,
                %w: tensor<64x?xf32, #graph.dims<"64", "seq">>) -> tensor<?x?xf32, #seq> {
  %g = graph.group "dense" {mechanism = "contraction"} : tensor<?x?xf32, #seq> {
    %d = graph.matmul %x, %w : (tensor<?x64xf32, #graph.dims<"seq", "64">>,
      tensor<64x?xf32, #graph.dims<"64", "seq">>) -> tensor<?x?xf32, #seq>
    graph.yield %d : tensor<?x?xf32, #seq>
  }
  return %g : tensor<?x?xf32, #seq>
})";

TEST_F(Plans, haveVersionsForOpenColumns) {
  auto choose = [&](plan::Chooser &chooser) {
    module = parseSourceString<ModuleOp>(kOpenProduct, &context);
    return llvm::cantFail(chosen(module->lookupSymbol<func::FuncOp>("main"), chooser));
  };
  Plan made = choose(byRule);
  ASSERT_EQ(made.groups[0].versions.size(), 3u);
  for (auto [i, tile] :
       llvm::enumerate(std::vector<std::pair<int64_t, int64_t>>{{14, 16}, {12, 32}, {8, 48}})) {
    plan::Version &version = made.groups[0].versions[i];
    EXPECT_EQ(version.when, (std::map<std::string, int64_t>{{"seq", 16 * ((int64_t)i + 1)}}));
    EXPECT_EQ(std::pair(version.knobs["m"], version.knobs["n"]), tile);
  }
  EXPECT_EQ(made.groups[0].knobs["n"], 32);
  Plan read = llvm::cantFail(plan::parsePlan(made.str(), "p.json"));
  plan::PlanChooser chooser(read, byRule);
  EXPECT_EQ(choose(chooser).str(), made.str());

  auto refusal = [&](const std::string &versions) {
    Plan wish = llvm::cantFail(plan::parsePlan(
        "{\"plan\": 1, \"groups\": [{\"name\": \"dense\", \"card\": \"matmul\", \"versions\": [" +
            versions + "]}]}",
        "p.json"));
    plan::PlanChooser chooser(wish, byRule);
    auto result = chosen(module->lookupSymbol<func::FuncOp>("main"), chooser);
    return result ? "" : llvm::toString(result.takeError());
  };
  std::string begin = "p.json:1: group 'dense': error: version 0: ";
  EXPECT_EQ(refusal(R"({"when": {"2*seq": 9}, "knobs": {"m": 4}})"), "");
  EXPECT_EQ(refusal(R"({"when": {}, "knobs": {}})"),
            begin + "its 'when' names no size, so that nothing after it would ever be taken");
  EXPECT_EQ(refusal(R"({"when": {"batch": 9}, "knobs": {}})"),
            begin + "'batch' is no size of the group, whose symbols are: seq");
  EXPECT_EQ(refusal(R"({"when": {"seq +": 9}, "knobs": {}})"),
            begin + "'seq +' is no size; write one of the group's symbols (seq), or an expression "
                    "of them");
  EXPECT_EQ(refusal(R"({"when": {"7": 9}, "knobs": {}})"),
            begin + "'7' is always the same; write a size of the group's symbols: seq");
  EXPECT_EQ(refusal(R"({"when": {"seq": -1}, "knobs": {}})"),
            begin + "'seq' is at most -1, but no size is negative");
  EXPECT_EQ(
      refusal(R"({"when": {"seq": 9}, "knobs": {"m": 7}})"),
      begin + "knob 'm' is 7, but card 'matmul' allows only [1, 2, 3, 4, 5, 6, 8, 12, 14, 16, 32]");
}

TEST_F(Plans, sayWhatIsWrongInThem) {
  EXPECT_EQ(replayGroup("\"versions\": 3"),
            "p.json:1: group 'dense': error: 'versions' is 3, but must be a list");
  EXPECT_EQ(replayGroup("\"versions\": [{\"when\": {}}]"),
            "p.json:1: group 'dense': error: each of 'versions' must be an object with 'when' and "
            "'knobs', got {\"when\":{}}");
  EXPECT_EQ(replayGroup("\"card\": \"\", \"versions\": [{\"when\": {\"s\": 1}, \"knobs\": {}}]"),
            "p.json:1: group 'dense': error: it has versions but no card");
  EXPECT_EQ(replayGroup("\"card\": \"matmul\", \"knobs\": {\"m\": 8}"), "");
  EXPECT_EQ(replay("{\"plan\": 2}"),
            "p.json: error: this is no plan: it must begin with {\"plan\": 1");
  EXPECT_EQ(replay("{\n\"plan\" 1}").substr(0, 33), "p.json:2: error: this is not JSON");
  EXPECT_EQ(replay("{\"plan\": 1e999}"),
            "p.json: error: this is not JSON: number overflow parsing '1e999'");
  EXPECT_EQ(
      replayGroup("\"cart\": \"matmul\""),
      "p.json:1: group 'dense': error: unknown field 'cart'; did you mean 'card'? known: name, "
      "ops, key, card, card_hash, knobs, versions, order, device, precision, measured, region, "
      "again, parts, mechanism");
  EXPECT_EQ(
      replayGroup("\"measured\": {\"error\": \"x\"}"),
      "p.json:1: group 'dense': error: 'measured' is {\"error\":\"x\"}, but must be an object "
      "of numbers");
  for (StringRef number : {"\"x\"", "8.5", "7e+79", "18446744073709551615"})
    EXPECT_EQ(replayGroup(("\"knobs\": {\"m\": " + number + "}").str()),
              "p.json:1: group 'dense': error: 'knobs' is {\"m\":" + number.str() +
                  "}, but must be an object of integers");
  EXPECT_EQ(
      replay("{\"plan\": 1, \"groups\": [{\"name\": \"dens\"}]}"),
      "p.json:1: group 'dens': error: the model has no group of this name; did you mean 'dense'?");
  EXPECT_EQ(replayGroup("\"card\": \"matmull\""),
            "p.json:1: group 'dense': error: there is no card 'matmull'; cards for this group: "
            "matmul, onednn_matmul; "
            "name a folder of cards with --schedules");
  EXPECT_EQ(replayGroup("\"card\": \"pool\""),
            "p.json:1: group 'dense': error: card 'pool' is not for it: loops 'm:p { n:p { "
            "k:s(dot) } }' are not 'p* { w+(max|sum) }': loop 's(dot)' is no 'w+(max|sum)'; "
            "cards for this group: matmul, onednn_matmul");
  EXPECT_EQ(
      replayGroup("\"card\": \"matmul\", \"knobs\": {\"rows\": 8}"),
      "p.json:1: group 'dense': error: card 'matmul' has no knob 'rows'; its knobs: m, n, panels, "
      "tiles");
  EXPECT_EQ(replayGroup("\"card\": \"matmul\", \"knobs\": {\"m\": 7}"),
            "p.json:1: group 'dense': error: knob 'm' is 7, but card 'matmul' allows only [1, 2, "
            "3, 4, 5, 6, 8, 12, 14, 16, 32]");
  EXPECT_EQ(replay("{\"plan\": 1,\n \"groups\": [\n{\"name\": \"dense\", \"ops\": [\"dot_1\"]}]}"),
            "p.json:3: group 'dense': error: op 'exp_1' is in it, but is not in its 'ops'; name "
            "the group that it shall be in, or add it");
  EXPECT_EQ(
      replayGroup("\"ops\": [\"dot_1\", \"exp_1\", \"lost\"]"),
      "p.json:1: group 'dense': error: op 'lost' cannot be in it: the model computes no op of "
      "this name in a group");
  EXPECT_EQ(replay("{\"plan\": 1, \"model\": \"sha256:0\", \"groups\": []}").substr(0, 64),
            "p.json: error: the plan was made for a model of fingerprint sha2");
  std::string changed = replayGroup("\"card\": \"matmul\", \"card_hash\": \"0\"");
  EXPECT_NE(changed.find("card 'matmul' has changed since the plan was made"), std::string::npos);
}

TEST_F(Plans, tilesFollowTheMachineAndTheSizes) {
  using Tile = std::pair<int64_t, int64_t>;
  EXPECT_EQ(tile(128, 10), Tile(14, 16));
  EXPECT_EQ(tile(128, 32), Tile(14, 32));
  EXPECT_EQ(tile(128, 256), Tile(6, 64));
  EXPECT_EQ(tile(64, 256), Tile(6, 64)); // 48 would compute a ninth for nothing
  EXPECT_EQ(tile(64, 512), Tile(8, 48)); // and here a thirtieth
  EXPECT_EQ(tile(128, 80), Tile(5, 80)); // 48 would compute a fifth for nothing
  EXPECT_EQ(tile(128, 112), Tile(3, 112));
  EXPECT_EQ(tile(128, 160), Tile(5, 80));
  EXPECT_EQ(tile(128, 96), Tile(8, 48));
  EXPECT_EQ(tile(1, 1000), Tile(1, 112)); // 8 columns fill up the last panel, of 64 24
  EXPECT_EQ(tile(1, 2048), Tile(1, 64));
  EXPECT_EQ(tile(1, 72), Tile(1, 80));
  EXPECT_EQ(tile(1, 40), Tile(1, 48));
  program::Machine avx2{program::Form::Lanes, 8, 16};
  EXPECT_EQ(tile(128, 8, avx2), Tile(14, 8));
  EXPECT_EQ(tile(128, 256, avx2), Tile(6, 16));
  EXPECT_EQ(tile(1, 256, avx2), Tile(1, 32));
}

TEST_F(Plans, transformedTilesAreForManyChannelsAndPixels) {
  auto formOf = [&](int64_t size, int64_t in, int64_t out, bool isKnown = true, int64_t fmas = 2) {
    auto type = [&](int64_t channels) {
      std::string sizes = std::to_string(size) + "x" + std::to_string(size);
      return "tensor<1x" + sizes + "x" + std::to_string(channels) + "xf32>";
    };
    std::string w = "tensor<" + std::to_string(out) + "x" + std::to_string(in) + "x3x3xf32>";
    std::string text = "func.func @main(%x: " + type(in) + ", %given: " + w + ") -> " + type(out) +
                       " {\n%known = graph.constant dense<1.0> : " + w + "\n%c = graph.conv %x, " +
                       (isKnown ? "%known" : "%given") +
                       " {strides = array<i64: 1, 1>, dilations = "
                       "array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>, "
                       "channels_last = true} : (" +
                       type(in) + ", " + w + ") -> " + type(out) + "\nreturn %c : " + type(out) +
                       "\n}";
    module = parseSourceString<ModuleOp>(text, &context);
    auto main = module->lookupSymbol<func::FuncOp>("main");
    program::Machine machine;
    machine.fmas = fmas;
    auto form = plan::winogradForm(*main.getOps<graph::ConvOp>().begin(), machine);
    return std::pair(form.tile, form.isLate);
  };
  using Form = std::pair<int64_t, bool>;
  EXPECT_EQ(formOf(56, 64, 64), Form(4, false));
  EXPECT_EQ(formOf(28, 128, 128), Form(4, false));
  EXPECT_EQ(formOf(14, 256, 256), Form(4, true)); // transformed filters are worth more than images
  EXPECT_EQ(formOf(7, 512, 512), Form(4, true));
  EXPECT_EQ(formOf(224, 3, 64), Form(0, false));  // its transforms cost more than they save
  EXPECT_EQ(formOf(4, 256, 256), Form(0, false)); // its filters are used for few pixels
  EXPECT_EQ(formOf(1, 256, 256), Form(0, false));
  EXPECT_EQ(formOf(56, 64, 64, false), Form(4, true));   // filters of a run are transformed in it
  EXPECT_EQ(formOf(32, 16, 12), Form(4, false));         // the direct form has 4 idle lanes, too
  EXPECT_EQ(formOf(32, 32, 8), Form(0, false));          // few filters have a form of their own,
  EXPECT_EQ(formOf(32, 32, 8, true, 1), Form(4, false)); // and sums cost it twice as much here
  EXPECT_EQ(formOf(32, 8, 12), Form(0, false));
  EXPECT_EQ(formOf(32, 8, 12, true, 1), Form(4, false));
  EXPECT_EQ(formOf(32, 32, 4, true, 1), Form(0, false));
}

TEST_F(Plans, fewFiltersLeaveTheLanesToTheReduction) {
  auto pixelsOf = [&](int64_t in, int64_t out, int64_t window) {
    std::string size = std::to_string(window), x = "tensor<1x40x40x" + std::to_string(in) + "xf32>";
    std::string w = "tensor<" + std::to_string(out) + "x" + std::to_string(in) + "x" + size + "x" +
                    size + "xf32>";
    std::string left = std::to_string(41 - window);
    std::string y = "tensor<1x" + left + "x" + left + "x" + std::to_string(out) + "xf32>";
    module = parseSourceString<ModuleOp>(
        "func.func @main(%x: " + x + ", %w: " + w + ") -> " + y +
            " {\n%c = graph.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, "
            "low = array<i64: 0, 0>, high = array<i64: 0, 0>, channels_last = true} : (" +
            x + ", " + w + ") -> " + y + "\nreturn %c : " + y + "\n}",
        &context);
    auto main = module->lookupSymbol<func::FuncOp>("main");
    return plan::narrowPixels(cast<graph::ConvOp>(main.getBody().front().front()), {});
  };
  EXPECT_EQ(pixelsOf(16, 3, 9), 9);
  EXPECT_EQ(pixelsOf(32, 9, 3), 3);
  EXPECT_EQ(pixelsOf(64, 8, 1), 0);  // sums over lanes cost too much
  EXPECT_EQ(pixelsOf(64, 16, 3), 0); // no lane is idle
  EXPECT_EQ(pixelsOf(64, 48, 3), 0);
}

TEST_F(Plans, gradientsOfFiltersAreInTasksAndCopiedWherePixelsAreFarApart) {
  auto knobsOf = [&](const std::string &in, const std::string &out, const std::string &window,
                     const std::string &pixels, const std::string &border) {
    std::string space = pixels + "x" + pixels + "x";
    std::string x = "tensor<16x" + space + in + "xf32>", y = "tensor<16x" + space + out + "xf32>";
    std::string w = "tensor<" + out + "x" + in + "x" + window + "x" + window + "xf32>";
    std::string around = "array<i64: " + border + ", " + border + ">";
    module = parseSourceString<ModuleOp>(
        "func.func @main(%x: " + x + ", %d: " + y + ") -> " + w +
            " {\n%g = graph.group \"filters\" {mechanism = \"pointwise\"} : " + w +
            " {\n%c = graph.conv_filter_gradient %x, %d {strides = array<i64: 1, 1>, dilations = "
            "array<i64: 1, 1>, low = " +
            around + ", high = " + around + ", channels_last = true} : (" + x + ", " + y + ") -> " +
            w + "\ngraph.yield %c : " + w + "\n}\nreturn %g : " + w + "\n}",
        &context);
    auto main = module->lookupSymbol<func::FuncOp>("main");
    return llvm::cantFail(chosen(main, byRule)).groups.front().knobs;
  };
  KnobValues few = knobsOf("144", "24", "1", "56", "0"); // 24 filters would fill 2 vectors of 3
  EXPECT_EQ(few["turned"], 1);
  EXPECT_EQ(few["n"] % 48, 0);
  EXPECT_EQ(few["strips"], 0);
  EXPECT_EQ(few["parts"], 8);
  KnobValues many = knobsOf("512", "512", "3", "7", "1");
  EXPECT_EQ(many["turned"], 0);
  EXPECT_EQ(many["strips"], 1);
  EXPECT_EQ(many["panels"], 1);
  EXPECT_EQ(many["parts"], 1); // too few positions
  EXPECT_EQ(many["chunks"], 8);
}

TEST_F(Plans, fingerprintsDifferWithTheText) {
  std::string one = plan::fingerprint(product(128)), other = plan::fingerprint(product(64));
  EXPECT_NE(one, other);
  EXPECT_EQ(one, plan::fingerprint(product(128)));
  EXPECT_EQ(one.substr(0, 7), "sha256:");
}

} // namespace
