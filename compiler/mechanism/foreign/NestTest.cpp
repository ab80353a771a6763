// NestTest: the loops and holes that a kernel of the frame "nest" has, and what it cannot show.

#include "compiler/mechanism/foreign/Nest.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;
using mechanism::Fit;

namespace {

constexpr StringLiteral kTypes = R"(
!x = tensor<?x?x8xf32, #graph.dims<"b", "s", 8>>
!r = tensor<?x?x1xf32, #graph.dims<"b", "s", 1>>
!y = tensor<?x?x5xf32, #graph.dims<"b", "s", 5>>
!q = tensor<8x8xf32>
func.func @main)";

class Nests : public testing::Test {
protected:
  Nests() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  /// The text of the nest of a function's ops, or why there is none.
  std::string read(StringRef function) {
    module = parseSourceString<ModuleOp>((kTypes + function).str(), &context);
    EXPECT_TRUE(module);
    SmallVector<Operation *> ops;
    auto main = *module->getOps<func::FuncOp>().begin();
    for (Operation &op : main.getBody().front().without_terminator())
      if (!isa<graph::ConstantOp>(op))
        ops.push_back(&op);
    std::string why;
    auto nest = mechanism::readNest(ops, why);
    fit = mechanism::kKernelNest.fits(ops);
    return nest ? nest->str(/*isC=*/true) : why;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  mechanism::Verdict fit;
};

TEST_F(Nests, ofReductionAndProductsHaveALoopForDimensionsThatAllWalkTogether) {
  EXPECT_EQ(read(R"((%x: !x, %a: tensor<1x8x5xf32>, %b: tensor<1x8x5xf32>) -> !y {
    %t = graph.reduce_sum %x {axes = array<i64: 2>, keep_dims = true} : (!x) -> !r
    %ts = graph.broadcast %t : (!r) -> !x
    %n = graph.div %x, %ts : !x
    %p = graph.matmul %n, %a : (!x, tensor<1x8x5xf32>) -> !y
    %q = graph.matmul %n, %b : (!x, tensor<1x8x5xf32>) -> !y
    %y = graph.mul %p, %q : !y
    return %y : !y })"),
            "0:reduce_sum f32; 1:matmul f32; 2:matmul f32; read_0(loop 0, loop 1) f32, "
            "read_1_a(loop 0, loop 1, value 0) f32, read_1_b(loop 1, loop 2) f32, "
            "read_2_a = read_1_a, read_2_b(loop 1, loop 2) f32, "
            "write_0(loop 0, loop 2, value 1, value 2) f32");
  EXPECT_EQ(fit.fit, Fit::Full);
}

TEST_F(Nests, computeEachOpInOneHoleAndHaveSeveralResults) {
  EXPECT_EQ(read(R"((%x: !x) -> (!x, !r) {
    %e = graph.exp %x : !x
    %t = graph.reduce_sum %e {axes = array<i64: 2>, keep_dims = true} : (!x) -> !r
    %ts = graph.broadcast %t : (!r) -> !x
    %y = graph.div %e, %ts : !x
    %m = graph.reduce_max %y {axes = array<i64: 2>, keep_dims = true} : (!x) -> !r
    return %y, %m : !x, !r })"),
            "0:reduce_sum f32; 1:reduce_max f32; read_0(loop 0, loop 1) f32, "
            "read_1(loop 0, loop 1, value 0, value 2) f32, write_0 = read_1, "
            "write_1(loop 0, value 1) f32");
}

TEST_F(Nests, haveIndicesThatStandForIntegersOfBothSizes) {
  EXPECT_EQ(read(R"((%x: !x) -> tensor<?x?xi64, #graph.dims<"b", "s">> {
    %m = graph.argmax %x {axis = 2 : i64} : (!x) -> tensor<?x?xi64, #graph.dims<"b", "s">>
    return %m : tensor<?x?xi64, #graph.dims<"b", "s">> })"),
            "0:argmax int; read_0(loop 0, loop 1) f32, write_0(loop 0, value 0) int");
}

TEST_F(Nests, mayStillGrowWithoutADecider) {
  read(R"((%x: !x) -> !x { %y = graph.exp %x : !x
    return %y : !x })");
  EXPECT_EQ(fit.fit, Fit::Partial);
}

TEST_F(Nests, showNoPartOfATensor) {
  EXPECT_EQ(read(R"((%x: tensor<4x8xf32>) -> tensor<4xf32> {
    %p = graph.slice %x {starts = #graph.dims<0, 2>, steps = array<i64: 1, 1>}
        : (tensor<4x8xf32>) -> tensor<4x6xf32>
    %t = graph.reduce_sum %p {axes = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xf32>
    return %t : tensor<4xf32> })"),
            "slice '-:7' is no reduction, no product, and not computed element by element");
  EXPECT_EQ(fit.fit, Fit::No);
}

TEST_F(Nests, walkNoTensorTwiceWithOneLoop) {
  EXPECT_EQ(read(R"((%x: !q) -> !q {
    %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (!q) -> !q
    %s = graph.add %x, %t : !q
    %y = graph.matmul %s, %x : (!q, !q) -> !q
    return %y : !q })"),
            "one loop would walk two dimensions of a tensor");
}

TEST_F(Nests, readNoDeciderAtSeveralPlaces) {
  EXPECT_EQ(read(R"((%x: !q) -> tensor<8xf32> {
    %t = graph.reduce_sum %x {axes = array<i64: 1>} : (!q) -> tensor<8xf32>
    %ts = graph.broadcast %t : (tensor<8xf32>) -> !q
    %d = graph.sub %x, %ts : !q
    %m = graph.reduce_max %d {axes = array<i64: 1>} : (!q) -> tensor<8xf32>
    return %m : tensor<8xf32> })"),
            "one loop would walk two dimensions of a tensor");
}

} // namespace
