// PrecisionTest: the rules of products of bf16 and of registers that hold matrices.

#include "compiler/estimate/Thresholds.h"
#include "compiler/plan/PlansTest.h"

#include <regex>

using namespace mlir;
using namespace heddle;
using plan::Plan;
using plan::Plans;

namespace {

/// A group's precision where factors may be rounded, and why.
TEST_F(Plans, roundFactorsWhereARooflineSavesTime) {
  plan::ShortChooser shortly(byRule);
  auto first = [&](int64_t m, int64_t n, program::ShortFloats floats) {
    program::Machine machine;
    machine.shortFloats = floats;
    return llvm::cantFail(chosen(product(m, n), shortly, machine)).groups;
  };
  using program::ShortFloats;
  for (ShortFloats floats : {ShortFloats::Native, ShortFloats::Emulated}) {
    EXPECT_TRUE(first(128, 256, floats)[0].isShort);
    EXPECT_FALSE(first(128, 4, floats)[0].isShort); // rounding takes longer than it saves
    EXPECT_FALSE(first(1, 1, floats)[0].isShort);
  }
  EXPECT_EQ(first(128, 256, ShortFloats::Native)[0].whyPrecision,
            "a roofline gives it 52.9 us with factors of bf16, and 70.2 us with those of f32");
  EXPECT_EQ(first(128, 256, ShortFloats::Native)[1].whyPrecision, "") << "it has no product";
  plan::GroupPlan none = first(128, 256, ShortFloats::None)[0];
  EXPECT_FALSE(none.isShort);
  EXPECT_EQ(none.whyPrecision.find("the target multiplies no bf16"), 0u) << none.whyPrecision;
}

/// Tiles of registers that hold matrices, and what other products keep.
TEST_F(Plans, multiplyMatricesWhereThatSavesTime) {
  plan::ShortChooser shortly(byRule);
  program::Machine machine;
  machine.shortFloats = program::ShortFloats::Native;
  machine.hasMatrices = true;
  auto first = [&](int64_t m, int64_t n, int64_t k = 64, bool isTurned = false) {
    return llvm::cantFail(chosen(product(m, n, k, isTurned), shortly, machine)).groups[0];
  };
  plan::GroupPlan large = first(128, 256), small = first(16, 4096);
  EXPECT_TRUE(large.isShort && large.knobs["m"] == 32 && large.knobs["n"] == 32);
  EXPECT_TRUE(small.isShort && small.knobs["m"] == 16 && small.knobs["n"] == 32);
  EXPECT_FALSE(first(128, 1).isShort); // 16 columns take as long as one
  EXPECT_EQ(first(128, 768, 768).knobs["panels"], 1);
  EXPECT_EQ(first(128, 768, 776).knobs["panels"], 0); // each tile packs its rows, of broken steps
  EXPECT_EQ(first(128, 768, 768, /*isTurned=*/true).knobs["panels"], 0); // or from columns
  EXPECT_EQ(first(1024, 2048).knobs["panels"], 0); // strips of results would be pages apart
}

/// Weights in blocks meet few rows as integers, many as bf16.
TEST_F(Plans, makeBF16OfWeightsInBlocksForManyRows) {
  plan::ShortChooser shortly(byRule);
  program::Machine machine;
  machine.shortFloats = program::ShortFloats::Native;
  auto first = [&](const std::string &rows, const std::string &dims) {
    std::string x = "tensor<" + rows + "x64xf32" + (dims.empty() ? "" : ", " + dims + "64>") + ">",
                y = "tensor<" + rows + "x48xf32" + (dims.empty() ? "" : ", " + dims + "48>") + ">";
    module = parseSourceString<ModuleOp>(
        "func.func @main(%x: " + x + ") -> " + y +
            " {\n%w = graph.constant #graph.stored<codes = dense<3> : tensor<64x48xui8>, scales = "
            "dense<0.5> : tensor<2x48xf32>> : tensor<64x48xf32>\n"
            "%g = graph.group \"dense\" {mechanism = \"contraction\"} : " +
            y + " {\n%d = graph.matmul %x, %w {block = 32} : (" + x + ", tensor<64x48xf32>) -> " +
            y + "\ngraph.yield %d : " + y + "\n}\nreturn %g : " + y + "\n}",
        &context);
    auto function = module->lookupSymbol<func::FuncOp>("main");
    return llvm::cantFail(chosen(function, shortly, machine)).groups[0];
  };
  EXPECT_FALSE(first("128", "").isShort) << "vectors are faster at integers";
  machine.hasMatrices = true;
  machine.lanes = 16;
  plan::GroupPlan many = first("128", ""), open = first("?", "#graph.dims<\"n\", ");
  EXPECT_TRUE(many.isShort && many.versions.empty());
  EXPECT_FALSE(first("48", "").isShort);
  ASSERT_EQ(open.versions.size(), 1U);
  EXPECT_TRUE(open.isShort && open.knobs["n"] == 32);
  EXPECT_EQ(open.versions[0].when, (std::map<std::string, int64_t>{{"n", 48}}));
  EXPECT_EQ(open.versions[0].isShort, false);
  EXPECT_EQ(open.versions[0].knobs["n"], machine.lanes);
}

/// Columns fill up a vector in any case; few rows leave most of a register empty.
TEST_F(Plans, multiplyIntegersInMatricesButForFewRows) {
  program::Machine machine;
  machine.hasMatrices = true;
  auto tile = [&](const std::string &rows, const std::string &columns) {
    std::string text =
        R"(func.func @main(%x: tensor<Mx64xui8>, %w: tensor<64xNxi8>) -> tensor<MxNxi32> {
  %g = graph.group "dense" {mechanism = "contraction"} : tensor<MxNxi32> {
    %d = graph.matmul %x, %w : (tensor<Mx64xui8>, tensor<64xNxi8>) -> tensor<MxNxi32>
    graph.yield %d : tensor<MxNxi32>
  }
  return %g : tensor<MxNxi32>
})";
    text = std::regex_replace(text, std::regex("<Mx"), "<" + rows + "x");
    text = std::regex_replace(text, std::regex("xNx"), "x" + columns + "x");
    module = parseSourceString<ModuleOp>(text, &context);
    Plan made = llvm::cantFail(chosen(module->lookupSymbol<func::FuncOp>("main"), byRule, machine));
    return std::pair(made.groups[0].knobs["m"], made.groups[0].knobs["n"]);
  };
  using Tile = std::pair<int64_t, int64_t>;
  EXPECT_EQ(tile("128", "256"), Tile(32, 32));
  EXPECT_EQ(tile("128", "3"), Tile(32, 16));
  EXPECT_EQ(tile("7", "256"), Tile(16, 32));
  EXPECT_EQ(tile("3", "16").first, 14);
}

/// Gates have a register of columns of each part.
TEST_F(Plans, multiplyMatricesOfUpToFourParts) {
  plan::ShortChooser shortly(byRule);
  program::Machine machine;
  machine.shortFloats = program::ShortFloats::Native;
  machine.hasMatrices = true;
  machine.rates.shorts = machine.rates.products / 2;
  auto first = [&](int64_t parts) {
    std::string all = "tensor<128x" + std::to_string(64 * parts) + "xf32>", slices, last;
    for (int64_t i = 0; i < parts; ++i) {
      std::string part = "%p" + std::to_string(i), next = "%m" + std::to_string(i);
      slices += part + " = graph.slice %d {starts = #graph.dims<0, " + std::to_string(64 * i) +
                ">, steps = array<i64: 1, 1>} : (" + all + ") -> tensor<128x64xf32>\n";
      if (i)
        slices += next + " = graph.mul " + last + ", " + part + " : tensor<128x64xf32>\n";
      last = i ? next : part;
    }
    std::string weights = "tensor<64x" + std::to_string(64 * parts) + "xf32>";
    module = parseSourceString<ModuleOp>(
        "func.func @main(%x: tensor<128x64xf32>, %w: " + weights +
            " {heddle.constant}) -> tensor<128x64xf32> {\n"
            "%g = graph.group \"cell\" {mechanism = \"contraction\"} : tensor<128x64xf32> {\n"
            "%d = graph.matmul %x, %w : (tensor<128x64xf32>, " +
            weights + ") -> " + all + "\n" + slices + "graph.yield " + last +
            " : tensor<128x64xf32>\n}\nreturn %g : tensor<128x64xf32>\n}",
        &context);
    auto function = module->lookupSymbol<func::FuncOp>("main");
    return llvm::cantFail(chosen(function, shortly, machine)).groups[0];
  };
  std::map<int64_t, std::pair<int64_t, int64_t>> tiles = {
      {2, {32, 32}}, {3, {16, 48}}, {4, {16, 64}}};
  for (auto &[parts, tile] : tiles) {
    plan::GroupPlan made = first(parts);
    EXPECT_TRUE(made.isShort) << parts;
    EXPECT_EQ(std::pair(made.knobs["m"], made.knobs["n"]), tile) << parts;
  }
  EXPECT_FALSE(first(5).isShort);
}

TEST_F(Plans, roundFactorsWhereAThresholdSaysSo) {
  plan::ShortChooser shortly(byRule);
  program::Machine machine;
  machine.shortFloats = program::ShortFloats::Native;
  for (int64_t saving : {0, 100}) {
    func::FuncOp function = product(128, saving == 0 ? 4 : 256);
    estimate::setThresholds(*module, machine, {{"bf16_saving", saving}});
    EXPECT_EQ(llvm::cantFail(chosen(function, shortly, machine)).groups[0].isShort, saving == 0);
  }
}

} // namespace
