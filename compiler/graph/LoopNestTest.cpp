// loop_nest_test: every registered op of the dialect has a loop nest; the worked example of PluS.

#include "compiler/graph/LoopNest.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
namespace graph = heddle::graph;

namespace {

class LoopNest : public testing::Test {
protected:
  LoopNest() { context.loadDialect<graph::GraphDialect, func::FuncDialect>(); }

  OwningOpRef<ModuleOp> parse(StringRef text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text.str();
    return module;
  }
  /// Keys of all ops of the dialect by name, the first of each name.
  std::map<std::string, std::string> keysOf(StringRef text) {
    std::map<std::string, std::string> keys;
    parse(text)->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<graph::GraphDialect>(op->getDialect()))
        keys.emplace(op->getName().stripDialect().str(), graph::loopNestOf(op).str());
    });
    return keys;
  }

  MLIRContext context;
};

/// One op of each kind, in generic form if that is shorter.
constexpr StringLiteral kEveryOp = R"(
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %i: tensor<2x3xi64>, %t: tensor<i1>, %n: tensor<i64>,
                %im: tensor<1x2x5xf32>, %gd: tensor<1x2x3xf32>, %w: tensor<2x2x3xf32>, %s: tensor<f32>, %v: tensor<2xi64>,
                %rows: tensor<?xi64, #graph.dims<"batch">>,
                %padded: tensor<?x?xf32, #graph.dims<"batch", "seq">>) {
  UNARY
  %cmp = graph.less %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %sel = graph.select %cmp, %x, %x : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %cast = graph.cast %x : (tensor<2x3xf32>) -> tensor<2x3xi32>
  %bits = graph.bitcast %x : (tensor<2x3xf32>) -> tensor<2x3xi32>
  %byte = graph.cast %x : (tensor<2x3xf32>) -> tensor<2x3xi8>
  %look = graph.lookup %byte {table = dense<0> : tensor<256xi8>} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  %isnan = graph.is_nan %x : (tensor<2x3xf32>) -> tensor<2x3xi1>
  %isinf = graph.is_inf %x : (tensor<2x3xf32>) -> tensor<2x3xi1>
  COMPARE
  %c = graph.constant dense<1.0> : tensor<2xf32>
  %iota = graph.iota {axis = 0} : () -> tensor<4xi64>
  %sizes = graph.sizes {values = #graph.dims<1, 2>} : () -> tensor<2xi64>
  %re = graph.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %dre = graph.dynamic_reshape %x, %v : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32, #graph.dims<"$a", "$b">>
  %bc = graph.broadcast %s : (tensor<f32>) -> tensor<2x3xf32>
  %dbc = graph.dynamic_broadcast %s, %v : (tensor<f32>, tensor<2xi64>) -> tensor<?x?xf32, #graph.dims<"$c", "$d">>
  %tr = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %sl = graph.slice %x {starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<1x2xf32>
  %dsl = graph.dynamic_slice %x, %v, %v, %v {axes = array<i64: 0, 1>}
    : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32, #graph.dims<"$e", "$f">>
  %cat = graph.concat %x, %x {axis = 0} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %pad = graph.pad %x, %s {low = #graph.dims<1, 0>, high = #graph.dims<0, 0>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x3xf32>
  %ga = graph.gather %x, %v {axis = 1} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %ge = graph.gather_elements %x, %i {axis = 1} : (tensor<2x3xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  %gn = graph.gather_nd %x, %v {batch_dims = 0} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<f32>
  %se = graph.scatter_elements %x, %i, %x {axis = 0} : (tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %sn = graph.scatter_nd %x, %v, %s : (tensor<2x3xf32>, tensor<2xi64>, tensor<f32>) -> tensor<2x3xf32>
  %rz = graph.resize %x {scales = array<f64: 1.0, 2.0>, mode = "linear", coordinates = "half_pixel"} : (tensor<2x3xf32>) -> tensor<2x6xf32>
  %rv = graph.reverse_sequence %x, %v {time_axis = 1, batch_axis = 0} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %rg = graph.range %n, %n, %n : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #graph.dims<"$g">>
  graph.bind_sizes %v {symbols = #graph.dims<"$h", "$k">, message = "a size is %lld"} : tensor<2xi64>
  %rl = graph.row_lengths %rows {of = "batch", size = "seq"} : (tensor<?xi64, #graph.dims<"batch">>) -> tensor<?xi64, #graph.dims<"batch">>
  %mm = graph.matmul %x, %y : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %cv = graph.conv %im, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>}
    : (tensor<1x2x5xf32>, tensor<2x2x3xf32>) -> tensor<1x2x3xf32>
  %ct = graph.conv_transpose %im, %w {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>,
    output_padding = array<i64: 0>} : (tensor<1x2x5xf32>, tensor<2x2x3xf32>) -> tensor<1x2x7xf32>
  %fg = graph.conv_filter_gradient %im, %gd {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>}
    : (tensor<1x2x5xf32>, tensor<1x2x3xf32>) -> tensor<2x2x3xf32>
  %up = graph.unpool %gd {window = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>}
    : (tensor<1x2x3xf32>) -> tensor<1x2x5xf32>
  %po = graph.pool %im {kind = "max", window = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>,
    high = array<i64: 0>} : (tensor<1x2x5xf32>) -> tensor<1x2x3xf32>
  %rs = graph.reduce_sum %x {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
  %rp = graph.reduce_prod %x {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  %rx = graph.reduce_max %x {axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  %rn = graph.reduce_min %x {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  %ax = graph.argmax %x {axis = 1} : (tensor<2x3xf32>) -> tensor<2xi64>
  %an = graph.argmin %x {axis = 1} : (tensor<2x3xf32>) -> tensor<2xi64>
  %cs = graph.cumsum %x {axis = 1} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %tk:2 = graph.topk %x {axis = 1} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  %if = graph.if %t : (tensor<i1>) -> tensor<2x3xf32> { graph.yield %x : tensor<2x3xf32> } else { graph.yield %x : tensor<2x3xf32> }
  %lo = graph.loop %n, %t, %x : (tensor<i64>, tensor<i1>, tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%k: tensor<i64>, %b: tensor<i1>, %z: tensor<2x3xf32>):
    graph.yield %b, %z : tensor<i1>, tensor<2x3xf32>
  }
  %sc = graph.scan %s, %c {state_count = 1} : (tensor<f32>, tensor<2xf32>) -> tensor<f32> {
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = graph.add %p, %q : tensor<f32>
    graph.yield %r : tensor<f32>
  }
  %gr = graph.group "g" : tensor<2x3xf32> {
    %in = graph.exp %x : tensor<2x3xf32>
    graph.yield %in : tensor<2x3xf32>
  }
  return
})";

TEST_F(LoopNest, existsForEveryOp) {
  std::string text = kEveryOp.str(), simple, compare;
  for (const char *name : {"equal", "not_equal", "less_equal", "greater", "greater_equal"})
    compare += (Twine("graph.") + name +
                " %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>\n")
                   .str();
  std::set<std::string> expected;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (name.getDialectNamespace() != "graph" || name.hasTrait<graph::Hosted>())
      continue;
    StringRef mnemonic = name.stripDialect();
    expected.insert(mnemonic.str());
    bool isSimple = name.hasTrait<OpTrait::SameOperandsAndResultType>();
    bool isUnary = name.hasTrait<OpTrait::OneOperand>();
    if (isSimple)
      simple +=
          ("graph." + mnemonic + (isUnary ? " %x" : " %x, %x") + " : tensor<2x3xf32>\n").str();
  }
  auto replace = [&](StringRef hole, const std::string &with) {
    text.replace(text.find(hole.str()), hole.size(), with);
  };
  replace("UNARY", simple);
  replace("COMPARE", compare);
  auto keys = keysOf(text);
  for (const std::string &name : expected)
    EXPECT_TRUE(keys.count(name)) << "graph." << name << " is not in kEveryOp";
  EXPECT_EQ(keys["exp"], "m:p { n:p(exp) }");
  EXPECT_EQ(keys["matmul"], "m:p { n:p { k:s(dot) } }");
  EXPECT_EQ(keys["conv"], "m:p { n:p { k:s { a:w(dot) } } }");
  EXPECT_EQ(keys["conv_filter_gradient"],
            "m:p { n:p { k:p { a:s { b:s(conv_filter_gradient) } } } }");
  EXPECT_EQ(keys["unpool"], "m:p { n:p { k:w(unpool) } }");
  EXPECT_EQ(keys["pool"], "m:p { n:p { k:w(max) } }");
  EXPECT_EQ(keys["reduce_prod"], "m:p { n:s(prod) }");
  EXPECT_EQ(keys["reduce_max"], "m:s { n:s(max) }");
  EXPECT_EQ(keys["transpose"], "m:p { n:p(permute) }");
  EXPECT_EQ(keys["topk"], "m:p { n:s(topk) }");
  EXPECT_EQ(keys["constant"], "");
}

TEST_F(LoopNest, ofSoftmaxBehindMatmulIsThePaperOne) {
  auto keys = keysOf(R"(
!m = tensor<?x128xf32, #graph.dims<"batch", 128>>
!r = tensor<?x1xf32, #graph.dims<"batch", 1>>
func.func @main(%a: tensor<?x64xf32, #graph.dims<"batch", 64>>, %b: tensor<64x128xf32>) -> !m {
  %g = graph.group "softmax" : !m {
    %d = graph.matmul %a, %b : (tensor<?x64xf32, #graph.dims<"batch", 64>>, tensor<64x128xf32>) -> !m
    %x = graph.reduce_max %d {axes = array<i64: 1>, keep_dims = true} : (!m) -> !r
    %xb = graph.broadcast %x : (!r) -> !m
    %s = graph.sub %d, %xb : !m
    %e = graph.exp %s : !m
    %t = graph.reduce_sum %e {axes = array<i64: 1>, keep_dims = true} : (!m) -> !r
    %tb = graph.broadcast %t : (!r) -> !m
    %q = graph.div %e, %tb : !m
    graph.yield %q : !m
  }
  return %g : !m
})");
  EXPECT_EQ(keys["group"], "m:p { n:s(max) { k:s(dot) } n:s(sub,exp,sum) n:p(div) }");
}

TEST_F(LoopNest, coalescesLoopsThatWalkTheSameTensorsTogether) {
  auto keys = keysOf(R"(
func.func @main(%a: tensor<2x3x4x5xf32>, %b: tensor<2x3x5x6xf32>, %c: tensor<6xf32>) -> tensor<2x3x4x6xf32> {
  %g = graph.group "batched" : tensor<2x3x4x6xf32> {
    %d = graph.matmul %a, %b : (tensor<2x3x4x5xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32>
    %e = graph.broadcast %c : (tensor<6xf32>) -> tensor<2x3x4x6xf32>
    %f = graph.add %d, %e : tensor<2x3x4x6xf32>
    graph.yield %f : tensor<2x3x4x6xf32>
  }
  return %g : tensor<2x3x4x6xf32>
})");
  EXPECT_EQ(keys["group"], "m:p { n:p { k:p(add) { a:s(dot) } } }");
}

TEST_F(LoopNest, hasNoLoopForWhatRunsOnce) {
  auto keys = keysOf(R"(
func.func @main(%x: tensor<1x7x1x5xf32>) -> tensor<1x7x1x5xf32> {
  %g = graph.group "one" : tensor<1x7x1x5xf32> {
    %e = graph.exp %x : tensor<1x7x1x5xf32>
    graph.yield %e : tensor<1x7x1x5xf32>
  }
  return %g : tensor<1x7x1x5xf32>
})");
  EXPECT_EQ(keys["exp"], "m:p { n:p(exp) }");
  EXPECT_EQ(keys["group"], "m:p(exp)");
}

TEST_F(LoopNest, keepsTheNewAxisOfASecondMatmulApart) {
  auto keys = keysOf(R"(
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %g = graph.group "two" : tensor<8x8xf32> {
    %d = graph.matmul %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %e = graph.matmul %d, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    graph.yield %e : tensor<8x8xf32>
  }
  return %g : tensor<8x8xf32>
})");
  EXPECT_EQ(keys["group"], "m:p { n:p { k:s(dot) } n:p { a:s(dot) } }");
}

TEST_F(LoopNest, showsExtents) {
  auto module = parse(R"(
!x = tensor<?x8xf32, #graph.dims<"2*h", 8>>
func.func @main(%a: !x) -> !x {
  %e = graph.exp %a : !x
  return %e : !x
})");
  module->walk([](graph::ExpOp op) {
    EXPECT_EQ(graph::loopNestOf(op).str(true), "m=2*h:p { n=8:p(exp) }");
  });
}

} // namespace
