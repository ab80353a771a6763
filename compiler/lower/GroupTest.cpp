// GroupTest: every mechanism of the table is carried out by one function of lower, and what a
// mechanism does not serve is computed element by element.

#include "compiler/lower/Schedule.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;

TEST(Lowerings, areThoseOfTheTable) {
  std::vector<const mechanism::Mechanism *> lowered;
  for (const lower::Lowering &lowering : lower::lowerings())
    if (lowering.form == program::Form::Lanes)
      lowered.push_back(lowering.mechanism);
  for (const mechanism::Mechanism *row : mechanism::all())
    EXPECT_EQ(llvm::count(lowered, row), 1) << row->name.str() << " has no lowering, or several";
  EXPECT_EQ(lowered.size(), mechanism::all().size()) << "a lowering is of no row";
}

TEST(Lowerings, forThreadsAreThoseOfTheTable) {
  for (const mechanism::Mechanism *row : mechanism::all()) {
    int64_t count = llvm::count_if(lower::lowerings(), [&](const lower::Lowering &lowering) {
      return lowering.form == program::Form::Threads && lowering.mechanism == row;
    });
    EXPECT_EQ(count, row->takesThreads) << row->name.str();
  }
}

namespace {

class Settling : public testing::Test {
protected:
  Settling() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  /// A product with this schedule, and one that its mechanism serves; what becomes of them.
  std::vector<lower::Settled> settle(StringRef schedule, const program::Machine &machine = {}) {
    std::string text = (R"(
!x = tensor<4x8xf32>
!y = tensor<4x16xf32>
func.func @main(%x: !x, %w: tensor<8x16xf32>) -> (!y, !y) {
  %a = graph.group "first" {mechanism = "contraction", card = "mine", card_hash = "0",
                            schedule = )" +
                        schedule + R"(} : !y {
    %p = graph.matmul %x, %w : (!x, tensor<8x16xf32>) -> !y
    graph.yield %p : !y
  }
  %b = graph.group "second" {mechanism = "contraction", card = "matmul", card_hash = "0",
      schedule = {mechanism = "contraction", m = 4 : i64, n = 16 : i64}} : !y {
    %p = graph.matmul %x, %w : (!x, tensor<8x16xf32>) -> !y
    graph.yield %p : !y
  }
  return %a, %b : !y, !y
})")
                           .str();
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return lower::settle(*module->getOps<func::FuncOp>().begin(), machine);
  }
  graph::GroupOp group(StringRef name) {
    graph::GroupOp found;
    module->walk([&](graph::GroupOp each) { found = each.getName() == name ? each : found; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Settling, leavesWhatMechanismsServe) {
  EXPECT_TRUE(settle("{mechanism = \"contraction\", m = 4 : i64, n = 16 : i64}").empty());
  EXPECT_EQ(group("first").cardName(), "mine");
  EXPECT_EQ(group("first").chosenMechanism(), "contraction");
}

TEST_F(Settling, computesElementByElementWhatNoMechanismServes) {
  auto settled = settle("{mechanism = \"rows\", rows = 1 : i64}");
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].group, "first");
  EXPECT_EQ(settled[0].mechanism, "rows");
  EXPECT_EQ(settled[0].card, "mine");
  EXPECT_FALSE(settled[0].why.empty());
  EXPECT_EQ(group("first").cardName(), "");
  EXPECT_EQ(group("first").chosenMechanism(), "pointwise");
  EXPECT_EQ(group("second").chosenMechanism(), "contraction");
}

TEST_F(Settling, computesElementByElementWhatHasNoCodeForTheMachinesForm) {
  program::Machine machine;
  machine.device = "gpu";
  machine.form = program::Form::Threads;
  auto settled = settle("{mechanism = \"onednn.matmul\"}", machine);
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].why,
            "the mechanism 'onednn.matmul' has no code for device 'gpu', whose tasks are threads");
  EXPECT_EQ(group("first").chosenMechanism(), "pointwise");
  EXPECT_EQ(group("second").chosenMechanism(), "contraction");
}

TEST_F(Settling, asksTheMachineOfTheGroupsDevice) {
  program::Machine machine;
  machine.others.push_back(machine);
  machine.others[0].form = program::Form::Threads;
  EXPECT_TRUE(settle("{mechanism = \"onednn.matmul\"}", machine).empty());
  group("first").setDevice(1);
  auto settled = lower::settle(*module->getOps<func::FuncOp>().begin(), machine);
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].group, "first");
}

TEST_F(Settling, refusesADeviceThatTheMachineLacks) {
  program::Machine machine;
  settle("{mechanism = \"contraction\", m = 4 : i64, n = 16 : i64}", machine);
  group("second").setDevice(7);
  lower::Refusal found = lower::refusal(group("second"), machine);
  EXPECT_EQ(found.kind, lower::Refusal::Kind::NotServed);
  EXPECT_EQ(found.why, "its device is 7, but the last one of the target is 0");
}

} // namespace
