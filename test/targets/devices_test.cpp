// devices_test: a model whose plan puts groups on devices, compiled for the target 'toy' and
// interpreted, against the reference. All op cases on devices are heddle-ops-devices-test's.

#include "compiler/pipeline/Pipeline.h"
#include "compiler/program/Dialect.h"
#include "compiler/reference/Interpreter.h"
#include "compiler/target/testing/toy/Toy.h"

#include "heddle/runtime.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

using namespace mlir;

namespace heddle {
namespace {

/// Two products, which one reduction is between: three groups where nothing is stitched.
constexpr const char *kModel = R"(
!x = tensor<?x5xf32, #graph.dims<"n", 5>>
!h = tensor<?x7xf32, #graph.dims<"n", 7>>
!s = tensor<?x1xf32, #graph.dims<"n", 1>>
!y = tensor<?x5xf32, #graph.dims<"n", 5>>
func.func @main(%x: !x, %v: tensor<5x7xf32>, %w: tensor<7x5xf32>) -> (!h, !y) {
  %h = graph.matmul %x, %v : (!x, tensor<5x7xf32>) -> !h loc("first")
  %s = graph.reduce_sum %h {axes = array<i64: 1>, keep_dims = true} : (!h) -> !s loc("sum")
  %b = graph.broadcast %s : (!s) -> !h loc("spread")
  %t = graph.tanh %b : !h loc("tanh")
  %y = graph.matmul %t, %w : (!h, tensor<7x5xf32>) -> !y loc("second")
  return %h, %y : !h, !y
}
)";

using Compiling = llvm::Expected<std::unique_ptr<Compiled>>;

class Devices : public testing::Test {
protected:
  static void SetUpTestSuite() { toy::add(); }
  ~Devices() override {
    heddle_session_destroy(session);
    heddle_module_destroy(handle);
  }

  static OwningOpRef<ModuleOp> parse(MLIRContext &context) {
    context.loadDialect<graph::GraphDialect, func::FuncDialect>();
    return parseSourceString<ModuleOp>(kModel, &context);
  }

  static Compiling compile(CompileOptions options) {
    auto context = std::make_shared<MLIRContext>(MLIRContext::Threading::DISABLED);
    auto module = parse(*context);
    EXPECT_TRUE(module);
    options.target = "toy";
    options.verifiesStages = true;
    options.without = {"fusion", "stitch", "siblings"};
    return compileGraph(context, std::move(module), options);
  }

  /// With the model's groups on these devices, one after the other.
  static Compiling compileOn(ArrayRef<int64_t> devices) {
    CompileOptions options;
    options.plansOnly = true;
    auto planned = compile(options);
    if (!planned)
      return planned.takeError();
    auto plan = nlohmann::json::parse((*planned)->planJson);
    for (auto [i, group] : llvm::enumerate(plan["groups"])) {
      group["device"] = devices[i % devices.size()];
      if (group["device"] == 2) // most cards have no code for it
        for (const char *field : {"card", "card_hash", "knobs"})
          group.erase(field);
    }
    options.plansOnly = false;
    options.planText = plan.dump();
    options.planPath = "p.json";
    return compile(options);
  }

  void load(Compiling made) {
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    compiled = std::move(*made);
    load();
  }
  void load() {
    loaded = llvm::cantFail(compiled->code->load(compiled->program));
    ASSERT_EQ(heddle_module_from_executable(loaded->executable(), nullptr, nullptr, &handle),
              nullptr);
    heddle_session_options_t options = {};
    options.size = sizeof options;
    ASSERT_EQ(heddle_session_create(handle, &options, &session), nullptr);
  }

  static heddle_tensor_t viewOf(std::vector<float> &numbers, std::vector<int64_t> shape) {
    heddle_tensor_t view = {};
    static float none;
    view.data = numbers.empty() ? &none : numbers.data();
    view.bytes = numbers.size() * sizeof(float);
    view.dtype = HEDDLE_FLOAT32;
    view.rank = shape.size();
    llvm::copy(shape, view.dims);
    return view;
  }

  /// The greatest difference from the reference; a message in `problem` where the run fails.
  double run(int64_t n) {
    std::mt19937 random(n + 1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> x(n * 5), v(35), w(35);
    for (auto *each : {&x, &v, &w})
      for (float &number : *each)
        number = uniform(random);
    heddle_tensor_t inputs[] = {viewOf(x, {n, 5}), viewOf(v, {5, 7}), viewOf(w, {7, 5})};
    heddle_tensor_t outputs[2] = {};
    if (auto *status = heddle_session_run(session, inputs, 3, outputs, 2)) {
      problem = heddle_status_message(status);
      heddle_status_destroy(status);
      return INFINITY;
    }
    MLIRContext context;
    auto module = parse(context);
    reference::Tensors given;
    Type f32 = Float32Type::get(&context);
    for (const heddle_tensor_t &input : inputs)
      given.push_back(
          reference::Tensor::borrow(f32, ArrayRef(input.dims, input.rank),
                                    {static_cast<const char *>(input.data), size_t(input.bytes)}));
    auto expected = llvm::cantFail(reference::Interpreter(*module).run(given));
    double worst = 0;
    for (auto [output, wanted] : llvm::zip(outputs, expected)) {
      EXPECT_EQ(output.dims[0], n);
      for (int64_t i = 0; i < wanted.count(); ++i)
        worst = std::max<double>(worst, std::fabs(static_cast<const float *>(output.data)[i] -
                                                  reference::numberAt(wanted, i)));
      heddle_tensor_release(&output);
    }
    return worst;
  }

  int64_t transfers() {
    int64_t count = 0;
    compiled->program.module->walk([&](program::TransferOp) { ++count; });
    return count;
  }

  std::unique_ptr<Compiled> compiled;
  std::shared_ptr<target::LoadedProgram> loaded;
  heddle_module_t *handle = nullptr;
  heddle_session_t *session = nullptr;
  std::string problem;
};

TEST_F(Devices, takeGroupsInTurnAndGiveTheSameNumbers) {
  for (std::vector<int64_t> devices : {std::vector<int64_t>{1, 2}, {2, 1}, {0, 1}, {2, 0, 1}}) {
    load(compileOn(devices));
    EXPECT_GT(transfers(), 0);
    for (int64_t n : {0, 1, 3, 4, 33, 100})
      EXPECT_LT(run(n), 1e-5) << n << ": " << problem;
    heddle_session_destroy(session);
    heddle_module_destroy(handle);
    session = nullptr;
    handle = nullptr;
  }
}

TEST_F(Devices, haveNoTransfersWhereOnlyTheHostIsUsed) {
  load(compileOn({0}));
  EXPECT_EQ(transfers(), 0);
  EXPECT_LT(run(33), 1e-5) << problem;
}

/// Kernels are given the tensors where they lie, as if all memory were one.
TEST_F(Devices, cannotReadEachOthersMemory) {
  auto made = compileOn({1, 2});
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  compiled = std::move(*made);
  SmallVector<program::TransferOp> all;
  compiled->program.module->walk([&](program::TransferOp op) { all.push_back(op); });
  ASSERT_FALSE(all.empty());
  for (program::TransferOp op : all)
    for (Operation *user : llvm::make_early_inc_range(op.getTarget().getUsers()))
      if (isa<program::WordOp>(user)) {
        user->setOperand(0, op.getSource());
        user->moveAfter(op->getParentOp());
      }
  for (program::TransferOp op : all)
    op.erase();
  load();
  EXPECT_EQ(run(33), INFINITY);
  EXPECT_NE(problem.find("it takes an address in the host's memory as one in memory 'toy"),
            std::string::npos)
      << problem;
}

TEST_F(Devices, callTheirInstructions) {
  auto calls = [&] {
    int64_t count = 0;
    compiled->program.module->walk(
        [&](func::CallOp call) { count += call.getCallee() == "toy.mac"; });
    return count;
  };
  load(compileOn({0}));
  EXPECT_EQ(calls(), 0);
  heddle_session_destroy(session);
  heddle_module_destroy(handle);
  load(compileOn({1}));
  EXPECT_GT(calls(), 0);
  EXPECT_LT(run(33), 1e-5) << problem;
}

TEST_F(Devices, areNamedWhereAPlanNamesOneThatThereIsNot) {
  auto made = compileOn({0, 3});
  ASSERT_FALSE(bool(made));
  std::string message = llvm::toString(made.takeError());
  EXPECT_NE(message.find("error: its device is 3, but the target's devices are 0 ('host'), 1 "
                         "('toy0'), 2 ('toy1')"),
            std::string::npos)
      << message;
}

TEST(Sanitized, codeIsTheHostsAlone) {
  target::Request request;
  request.isSanitized = true;
  for (auto [names, host] : {std::pair("cuda", "host"), {"x86-64-v3+sm_90", "x86-64-v3"}}) {
    auto targets = target::targetsFor(names, request);
    ASSERT_FALSE(bool(targets));
    EXPECT_EQ(llvm::toString(targets.takeError()),
              "error: target '" + std::string(names) +
                  "' has a device, whose kernels AddressSanitizer does not reach\nnote: sanitized "
                  "code is for '" +
                  host + "'; compute-sanitizer looks at what a GPU's kernels access");
  }
}

} // namespace
} // namespace heddle
