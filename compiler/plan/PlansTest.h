// PlansTest: the fixture of the tests of plans, a product and what is folded of it.

#ifndef HEDDLE_PLAN_PLANSTEST_H
#define HEDDLE_PLAN_PLANSTEST_H

#include "compiler/plan/Chooser.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace heddle::plan {

inline constexpr llvm::StringLiteral kProduct = R"(
func.func @main(%x: tensor<MxKxf32>, %w: tensor<KxNxf32> {heddle.constant}) -> tensor<MxNxf32> {
  %g = graph.group "dense" {mechanism = "contraction"} : tensor<MxNxf32> {
    %d = graph.matmul %x, %w : (tensor<MxKxf32>, tensor<KxNxf32>) -> tensor<MxNxf32> loc("dot_1")
    %e = graph.exp %d : tensor<MxNxf32> loc("exp_1")
    graph.yield %e : tensor<MxNxf32>
  }
  %h = graph.group "fold" {mechanism = "rows"} : tensor<Mxf32> {
    %s = graph.reduce_sum %g {axes = array<i64: 1>}
      : (tensor<MxNxf32>) -> tensor<Mxf32> loc("sum_1")
    graph.yield %s : tensor<Mxf32>
  }
  return %g : tensor<MxNxf32>
})";

/// The cards, the chooser of rules, and plans that it makes.
class Plans : public testing::Test {
protected:
  Plans()
      : cards((context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>(),
               llvm::cantFail(warehouse::Warehouse::load(context)))) {}

  mlir::func::FuncOp product(int64_t m = 128, int64_t n = 256, int64_t k = 64,
                             bool isTurned = false) {
    std::string text = kProduct.str();
    auto replace = [&](llvm::StringRef from, const char *to) {
      text.replace(text.find(from), from.size(), to);
    };
    if (isTurned) {
      replace("%x: tensor<MxKxf32>", "%x: tensor<KxMxf32>");
      replace("%d = graph.matmul %x",
              "%t = graph.transpose %x {permutation = array<i64: 1, 0>}"
              " : (tensor<KxMxf32>) -> tensor<MxKxf32>\n%d = graph.matmul %t");
    }
    auto fill = [&](const char *hole, int64_t size) {
      for (size_t at; (at = text.find(hole)) != std::string::npos;)
        text.replace(at + 1, 1, std::to_string(size));
    };
    for (const char *hole : {"<Mx", "xMx"})
      fill(hole, m);
    for (const char *hole : {"<Nx", "xNx"})
      fill(hole, n);
    for (const char *hole : {"<Kx", "xKx"})
      fill(hole, k);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module->lookupSymbol<mlir::func::FuncOp>("main");
  }

  llvm::Expected<Plan> chosen(mlir::func::FuncOp function, Chooser &chooser,
                              program::Machine machine = {}) {
    Plan result;
    result.model = "sha256:0";
    if (llvm::Error error = choose(function, cards, chooser, machine, result))
      return error;
    return result;
  }

  std::pair<int64_t, int64_t> tile(int64_t m, int64_t n, program::Machine machine = {}) {
    warehouse::KnobValues knobs =
        llvm::cantFail(chosen(product(m, n), byRule, machine)).groups.front().knobs;
    return {knobs["m"], knobs["n"]};
  }

  /// The error of a replay of the plan `text`.
  std::string replay(llvm::StringRef text, const program::Machine &machine = {}) {
    auto wish = parsePlan(text, "p.json");
    if (!wish)
      return llvm::toString(wish.takeError());
    PlanChooser chooser(*wish, byRule);
    mlir::func::FuncOp function = product();
    if (llvm::Error error = chooser.check(function, fingerprint(function), machine))
      return llvm::toString(std::move(error));
    auto result = chosen(function, chooser);
    return result ? "" : llvm::toString(result.takeError());
  }
  std::string replayGroup(llvm::StringRef fields) {
    return replay(("{\"plan\": 1, \"groups\": [{\"name\": \"dense\", " + fields + "}]}").str());
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  warehouse::Warehouse cards;
  DefaultChooser byRule;
};

} // namespace heddle::plan

#endif // HEDDLE_PLAN_PLANSTEST_H
