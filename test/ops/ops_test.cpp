// ops_test: every op of the graph dialect, compiled, against the interpreter.
//
// Each case runs in a process of its own, so that one that crashes is one failure. A failure prints
// the seed's tensors that differ and the whole module, which heddle-opt takes. HEDDLE_OPS_TARGET
// names another target than this machine, one whose code it runs. heddle-ops-asan-test is the same
// with AddressSanitizer, which also looks at each access of the compiled code. With
// HEDDLE_OPS_TARGET=c (the test heddle-ops-c-test) each case is a C file, see c_program.h, that the
// command HEDDLE_OPS_CC compiles; heddle-ops-c-asan-test has that look for undefined behaviour.
// With HEDDLE_OPS_TARGET=toy programs are interpreted, and HEDDLE_OPS_DEVICES puts groups on as
// many of its devices in turn. With HEDDLE_OPS_IN_PLACE results take the place of inputs wherever
// types allow it. HEDDLE_OPS_OPT is the effort of LLVM, as a C compiler's -O: with 0, meaning is
// tested in 0.4 of the time. With HEDDLE_OPS_TARGET=cuda all groups that a device takes are on it,
// and HEDDLE_OPS_CASES=smallest leaves of the cases the smallest of each op.

#include "test/ops/c_program.h"
#include "test/ops/case.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/edit/Sharing.h"
#include "compiler/partition/Partition.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/reference/Environment.h"
#include "compiler/target/testing/toy/Toy.h"

#include "heddle/runtime.h"
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

extern "C" {
void __asan_init() __attribute__((weak));
/// A case ends with its process, which leaves what it holds.
const char *__asan_default_options() { return "detect_leaks=0"; }
}

namespace heddle::ops {

/// Ops that a C file cannot have, as they need services of the runtime.
static const std::set<StringRef> kNeedsRuntime = {"graph.cumsum",
                                                  "graph.custom",
                                                  "graph.forest",
                                                  "graph.fourier",
                                                  "graph.image_decode",
                                                  "graph.list_at",
                                                  "graph.list_cast",
                                                  "graph.list_concat",
                                                  "graph.list_erase",
                                                  "graph.list_insert",
                                                  "graph.list_length",
                                                  "graph.list_make",
                                                  "graph.list_rank",
                                                  "graph.list_split",
                                                  "graph.nonzero",
                                                  "graph.string_cast",
                                                  "graph.string_concat",
                                                  "graph.string_match",
                                                  "graph.string_normalize",
                                                  "graph.string_split",
                                                  "graph.suppress",
                                                  "graph.topk",
                                                  "graph.unique"};

namespace {

/// Strings and lists are types of the dialect; numbers are not.
bool needsRuntime(ModuleOp module) {
  bool isNeeded = false;
  auto look = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    isNeeded |= element.getDialect().getNamespace() == "graph";
  };
  module.walk([&](Operation *op) {
    isNeeded |= kNeedsRuntime.count(op->getName().getStringRef()) > 0;
    llvm::for_each(op->getResultTypes(), look);
    llvm::for_each(op->getOperandTypes(), look);
  });
  return isNeeded;
}

/// Whether results lie where inputs do; HEDDLE_OPS_IN_PLACE asks for it in all cases.
bool isInPlace(const Case &test) { return test.inPlace || getenv("HEDDLE_OPS_IN_PLACE"); }

/// Gives results the place of inputs of their types.
void share(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  std::set<unsigned> taken;
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    for (unsigned j = 0; j < main.getNumArguments(); ++j) {
      Type type = main.getArgumentTypes()[j], element = getElementTypeOrSelf(type);
      bool isFitting = type == main.getResultTypes()[i] && !isa<graph::ListType>(element) &&
                       heddle_dtype_bits(graph::onnxTypeOf(element)) >= 8 &&
                       !graph::isString(element);
      if (!isFitting || !taken.insert(j).second)
        continue;
      main.setResultAttr(i, graph::kShares, Builder(module.getContext()).getI64IntegerAttr(j));
      break;
    }
}

std::string messageOf(llvm::Error error) { return llvm::toString(std::move(error)); }

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

/// One artefact and its session.
struct Program {
  std::unique_ptr<Compiled> compiled;
  std::shared_ptr<target::LoadedProgram> loaded;
  std::unique_ptr<CProgram> inC; // instead of all below, where that is the target
  heddle_module_t *module = nullptr;
  heddle_session_t *session = nullptr;

  ~Program() {
    heddle_session_destroy(session);
    heddle_module_destroy(module);
  }
};

std::string messageOf(heddle_status_t *status) {
  std::string message = heddle_status_message(status);
  heddle_status_destroy(status);
  return message;
}

CompileOptions plainOptions() {
  CompileOptions options;
  options.verifiesStages = true;
  if (const char *target = getenv("HEDDLE_OPS_TARGET"))
    options.target = target;
  if (const char *level = getenv("HEDDLE_OPS_OPT"))
    options.optLevel = atoi(level);
  if (const char *policy = getenv("HEDDLE_OPS_FUSION"))
    if (!(options.fusion = partition::findPolicy(policy)))
      llvm::report_fatal_error("HEDDLE_OPS_FUSION names no policy of fusion");
  options.isSanitized = __asan_init != nullptr && options.target != "c"; // a C compiler does that
  return options;
}

CompileOptions optionsOf(const Case &test) {
  CompileOptions options = plainOptions();
  std::map<std::string, int64_t> thresholds = test.thresholds;
  if (isForDevice()) // cards and their versions are of the host
    thresholds["device_elements"] = test.card.empty() ? 0 : estimate::kDeviceElements.most;
  if (test.isShort) { // wherever it can be, be it slower
    options.shortFloats = program::ShortFloats::Emulated;
    thresholds["bf16_saving"] = 0;
  }
  if (!thresholds.empty()) {
    nlohmann::json plan = {{"plan", 1}, {"groups", nlohmann::json::array()}};
    plan["thresholds"] = thresholds;
    options.planText = plan.dump();
    options.planPath = "wanted.plan";
  }
  return options;
}

/// As many devices as take the groups in turn; 0: none but the first.
int64_t devicesInTurn() {
  const char *count = getenv("HEDDLE_OPS_DEVICES");
  return count ? atoi(count) : 0;
}

/// Puts groups on devices in turn, where they have no rows of lengths of their own. The last of
/// three has no code for most cards, and what is placed is of one device.
void putInTurn(nlohmann::json &plan, ModuleOp graph) {
  bool isRagged = false;
  graph.walk([&](graph::RowLengthsOp) { isRagged = true; });
  int64_t next = 1, count = devicesInTurn();
  if (count && !isRagged)
    for (auto &group : plan["groups"]) {
      group["device"] = next++ % count;
      if (group["device"] == 2 || group.value("card", "") == "concat_in_place")
        for (const char *field : {"card", "card_hash", "knobs", "versions"})
          group.erase(field);
    }
}

/// The default plan, but with the card that the case wants of its convolutions.
llvm::Expected<std::string> planOf(const Case &test) {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  Model model(*context, test.takesWeights);
  test.build(model);
  model.finish();
  if (isInPlace(test))
    share(*model.module);
  CompileOptions options = optionsOf(test);
  options.plansOnly = true;
  auto compiled = compileGraph(std::move(context), std::move(model.module), options);
  if (!compiled)
    return compiled.takeError();
  auto plan = nlohmann::json::parse((*compiled)->planJson);
  auto knobs = test.knobs;
  constexpr int64_t kMostRows = 14; // without registers that hold matrices
  if (auto rows = knobs.find("m");
      test.isShort && rows != knobs.end() && !(*compiled)->machine.hasMatrices)
    rows->second = std::min(rows->second, kMostRows);
  for (auto &group : plan["groups"]) {
    StringRef card = group["card"].get_ref<const std::string &>();
    if (!test.versions.empty() && card == test.card)
      group["versions"] = nlohmann::json::parse(test.versions);
    else if (test.versions.empty() && !test.card.empty() && card.starts_with("conv"))
      group.update({{"card", test.card},
                    {"card_hash", ""},
                    {"knobs", knobs},
                    {"precision", test.isShort ? "bf16" : "f32"}});
  }
  putInTurn(plan, (*compiled)->graph.get());
  return plan.dump();
}

/// An empty message is success.
std::string makeProgram(const Case &test, Program &program) {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  Model model(*context, test.takesWeights);
  test.build(model);
  model.finish();
  if (isInPlace(test))
    share(*model.module);
  CompileOptions options = optionsOf(test);
  if (!test.card.empty() || devicesInTurn()) {
    auto plan = planOf(test);
    if (!plan)
      return "plan: " + messageOf(plan.takeError());
    options.planText = *plan;
    options.planPath = "wanted.plan";
  }
  auto compiled = compileGraph(std::move(context), std::move(model.module), options);
  if (!compiled)
    return "compile: " + messageOf(compiled.takeError());
  program.compiled = std::move(*compiled);
  const target::Code &code = *program.compiled->code;
  if (options.target == "c")
    return CProgram::make(program.compiled->program,
                          llvm::cantFail(code.text(program.compiled->program)), program.inC);
  auto loaded = code.load(program.compiled->program);
  if (!loaded)
    return "load: " + messageOf(loaded.takeError());
  program.loaded = std::move(*loaded);
  if (auto *status = heddle_module_from_executable(program.loaded->executable(), nullptr, nullptr,
                                                   &program.module))
    return "module: " + messageOf(status);
  heddle_session_options_t session = {};
  session.size = sizeof session;
  session.threads = 2;
  if (auto *status = heddle_session_create(program.module, &session, &program.session))
    return "session: " + messageOf(status);
  return "";
}

/// Elements of less than 8 bits as the C API has them.
void pack(reference::Tensor &tensor) {
  int bits = heddle_dtype_bits(graph::onnxTypeOf(tensor.element));
  if (bits >= 8)
    return;
  auto packed = std::make_shared<std::vector<char>>(llvm::divideCeil(tensor.count() * bits, 8));
  for (int64_t i = 0; i < tensor.count(); ++i)
    (*packed)[i * bits / 8] |= (tensor.bytes()[i] & ((1 << bits) - 1)) << (i * bits % 8);
  tensor.owned = packed;
}

/// A result in the interpreter's form.
reference::Tensor unpacked(Type element, ArrayRef<int64_t> shape, const char *bytes) {
  int64_t count = reference::countOf(shape);
  int bits = heddle_dtype_bits(graph::onnxTypeOf(element));
  if (bits >= 8)
    return reference::Tensor::borrow(element, shape,
                                     {bytes, size_t(count * graph::bytesOf(element))});
  reference::Tensor tensor = reference::Tensor::zeros(element, shape);
  for (int64_t i = 0; i < count; ++i)
    tensor.data()[i] = (bytes[i * bits / 8] >> (i * bits % 8)) & ((1 << bits) - 1);
  return tensor;
}

heddle_tensor_t viewOf(const reference::Tensor &tensor) {
  heddle_tensor_t view = {};
  view.data = const_cast<char *>(tensor.bytes().data());
  view.bytes = tensor.bytes().size();
  view.dtype = graph::onnxTypeOf(tensor.element);
  view.rank = tensor.rank();
  llvm::copy(tensor.shape, view.dims);
  return view;
}

bool isClose(double expected, double found, const Tolerance &tolerance) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found))
    return expected == found;
  return std::fabs(expected - found) <=
         tolerance.absolute + tolerance.relative * std::fabs(expected);
}

/// Compares a result with the interpreter's; returns the difference, empty if there is none.
std::string compare(const reference::Tensor &expected, const heddle_tensor_t &found,
                    const Tolerance &tolerance) {
  SmallVector<int64_t> shape(found.dims, found.dims + found.rank);
  if (shape != expected.shape)
    return "shape " + reference::textOf(shape) + " instead of " + reference::textOf(expected.shape);
  if (found.dtype != graph::onnxTypeOf(expected.element))
    return "element type " + std::to_string(found.dtype);
  auto tensor = unpacked(expected.element, shape, static_cast<const char *>(found.data));
  std::string text;
  int64_t wrong = 0, count = expected.count();
  for (int64_t i = 0; i < count; ++i) {
    bool same;
    if (isa<FloatType>(expected.element))
      same = isClose(reference::numberAt(expected, i), reference::numberAt(tensor, i), tolerance);
    else
      same = reference::integerAt(expected, i) == reference::integerAt(tensor, i);
    if (same || ++wrong > 4)
      continue;
    char line[160];
    if (isa<FloatType>(expected.element))
      snprintf(line, sizeof line, "%.9g instead of %.9g", reference::numberAt(tensor, i),
               reference::numberAt(expected, i));
    else
      snprintf(line, sizeof line, "%lld instead of %lld",
               (long long)reference::integerAt(tensor, i),
               (long long)reference::integerAt(expected, i));
    text += "  element " + std::to_string(i) + ": " + line + "\n";
  }
  if (!wrong)
    return "";
  return std::to_string(wrong) + " of " + std::to_string(count) + " elements differ\n" + text;
}

std::string runOnce(Model &model, ModuleOp oracle, Program &program, const Sizes &sizes) {
  auto main = oracle.lookupSymbol<func::FuncOp>("main");
  std::vector<reference::Tensor> inputs, given;
  std::vector<heddle_tensor_t> views;
  for (auto [type, fill] : llvm::zip(main.getArgumentTypes(), model.fills)) {
    SmallVector<int64_t> shape;
    for (const graph::Dim &dim : graph::dimsOf(type))
      shape.push_back(*dim.evaluate(
          [&](StringRef symbol) -> std::optional<int64_t> { return sizes.at(symbol.str()); }));
    inputs.push_back(randomTensor(cast<RankedTensorType>(type).getElementType(), shape, fill, sizes,
                                  model.random));
    given.push_back(inputs.back());
    ArrayRef<char> bytes = given.back().bytes(); // results may take its place
    given.back().owned = std::make_shared<std::vector<char>>(bytes.begin(), bytes.end());
    if (!program.inC)
      pack(given.back());
    views.push_back(viewOf(given.back()));
  }
  uint64_t seed = model.random();
  auto expected = runOracle(oracle, seed, inputs);
  if (!expected)
    return "the interpreter refuses the case: " + messageOf(expected.takeError());
  std::vector<heddle_tensor_t> outputs(expected->size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (auto input = main.getResultAttrOfType<IntegerAttr>(i, graph::kShares)) {
      outputs[i].data = views[input.getInt()].data;
      outputs[i].bytes = views[input.getInt()].bytes;
    }
  std::vector<CResult> results;
  std::vector<reference::Tensor> held;
  if (program.inC) {
    if (std::string problem = program.inC->run(views, outputs, seed, results); !problem.empty())
      return "run: " + problem;
    for (auto [i, result] : llvm::enumerate(results)) {
      held.push_back(reference::Tensor::borrow((*expected)[i].element, result.shape, result.bytes));
      pack(held.back());
      outputs[i] = viewOf(held.back());
      outputs[i].dtype = result.dtype;
    }
  } else {
    heddle_session_seed(program.session, seed);
    if (auto *status = heddle_session_run(program.session, views.data(), views.size(),
                                          outputs.data(), outputs.size()))
      return "run: " + messageOf(status);
  }
  std::string problems;
  Operation *terminator = main.getBody().front().getTerminator();
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string problem = compare((*expected)[i], outputs[i], model.tolerances[i]);
    if (!program.inC)
      heddle_tensor_release(&outputs[i]);
    if (problem.empty())
      continue;
    Operation *op = terminator->getOperand(i).getDefiningOp();
    problems += "result " + std::to_string(i) + " (" +
                (op ? op->getName().getStringRef().str() : "argument") + "): " + problem;
  }
  return problems;
}

std::string checkGroups(const Case &test, const Compiled &compiled) {
  if (!test.card.empty()) {
    bool isTaken = false;
    compiled.graph.get()->walk([&](graph::GroupOp group) {
      auto card = group->getAttrOfType<StringAttr>("card");
      isTaken |= card && card.getValue() == test.card;
    });
    if (!isTaken)
      return "no group has the card " + test.card + "\n";
    if (!nlohmann::json::parse(compiled.reportJson)["pointwise_instead"].empty())
      return "a group runs element by element\n";
  }
  bool hasShort = false;
  compiled.graph.get()->walk([&](graph::GroupOp group) { hasShort |= group.isShort(); });
  bool isShort = test.isShort && (!test.needsMatrices || compiled.machine.hasMatrices);
  bool mayBeExact = isForDevice(); // which rounds factors in fewer cases
  if (hasShort != isShort && (hasShort || !mayBeExact))
    return hasShort ? "factors are rounded to bf16\n" : "no factors are rounded to bf16\n";
  for (auto &[step, wanted] : test.groups) {
    int64_t found = 0;
    compiled.graph.get()->walk(
        [&](graph::GroupOp group) { found += partition::stepsOf(group).back() == step; });
    if (found != wanted)
      return std::to_string(found) + " groups of " + step + " instead of " +
             std::to_string(wanted) + "\n";
    if (compiled.reportJson.find("\"planned\": \"" + step + "\"") != std::string::npos)
      return "a group of " + step + " runs element by element\n";
  }
  return "";
}

/// Numbers of the cases that have run, and of those with kernels for a device beside the host.
int casesRun = 0, casesOnDevice = 0;

/// All that is wrong with a case.
std::string check(const Case &test, bool &isOnDevice) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  Model model(context, test.takesWeights);
  test.build(model);
  model.finish();
  if (isInPlace(test))
    share(*model.module);
  std::string text = textOf(*model.module);
  Program program;
  std::string problems = makeProgram(test, program);
  if (plainOptions().target == "c" && needsRuntime(*model.module))
    return StringRef(problems).contains("cannot be written as C")
               ? ""
               : "it needs the runtime, and is not refused: " + problems + "\n" + text;
  if (problems.empty() && !devicesInTurn()) // on other devices other mechanisms serve
    problems = checkGroups(test, *program.compiled);
  isOnDevice =
      problems.empty() && llvm::any_of(program.compiled->program.devices,
                                       [](auto &device) { return !device.kernels.empty(); });
  std::vector<Sizes> runs = test.runs;
  if (runs.empty())
    runs.emplace_back();
  if (problems.empty())
    for (const Sizes &sizes : runs) {
      std::string problem = runOnce(model, *model.module, program, sizes);
      if (problem.empty())
        continue;
      for (auto &[symbol, size] : sizes)
        problems += symbol + " = " + std::to_string(size) + " ";
      problems += "\n" + problem;
    }
  return problems.empty() ? "" : problems + "\n" + text;
}

/// As check, in a process of its own.
std::string checkApart(const Case &test, bool &isOnDevice) {
  enum { Fine, Wrong, Unwritten, FineOnDevice }; // how it ends
  int ends[2];
  if (pipe(ends) != 0)
    return "cannot open a pipe";
  fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    std::string problems = check(test, isOnDevice);
    for (size_t done = 0; done < problems.size();) {
      ssize_t count = write(ends[1], problems.data() + done, problems.size() - done);
      if (count <= 0)
        _exit(Unwritten);
      done += count;
    }
    _exit(!problems.empty() ? Wrong : isOnDevice ? FineOnDevice : Fine);
  }
  close(ends[1]);
  std::string problems;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    problems.append(buffer, count);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  isOnDevice = WIFEXITED(status) && WEXITSTATUS(status) == FineOnDevice;
  if (status == 0 || isOnDevice || !problems.empty())
    return problems;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  Model model(context, test.takesWeights);
  test.build(model);
  model.finish();
  std::string how = WIFSIGNALED(status) ? "by signal " + std::to_string(WTERMSIG(status))
                                        : "with status " + std::to_string(WEXITSTATUS(status));
  return "ended " + how + "\n" + textOf(*model.module);
}

Cases wantedCases() {
  const char *which = getenv("HEDDLE_OPS_CASES");
  if (!which)
    return allCases();
  if (StringRef(which) != "smallest")
    llvm::report_fatal_error("HEDDLE_OPS_CASES is not 'smallest'");
  return smallestCases();
}

class CaseTest : public testing::Test {
public:
  explicit CaseTest(Case test) : test(std::move(test)) {}
  void TestBody() override {
    bool isOnDevice = false;
    std::string problems = (getenv("HEDDLE_OPS_DEBUG") ? check : checkApart)(test, isOnDevice);
    ++casesRun;
    casesOnDevice += isOnDevice;
    if (!problems.empty())
      ADD_FAILURE() << problems;
  }

private:
  Case test;
};

/// AddressSanitizer judges, if it is on: an input of fewer bytes than its sizes say.
class ShortInputTest : public testing::Test {
public:
  void TestBody() override {
    if (!__asan_init)
      GTEST_SKIP() << "heddle-ops-asan-test has the sanitizer";
    Case test{"", [](Model &model) { model.output(model.op("neg", {model.input("f32[n]")})); }, {}};
    Program program;
    ASSERT_EQ(makeProgram(test, program), "");
    auto floats = std::make_unique<float[]>(99);
    heddle_tensor_t input = {}, output = {};
    input.data = floats.get();
    input.bytes = 100 * sizeof(float);
    input.dtype = HEDDLE_FLOAT32;
    input.rank = 1;
    input.dims[0] = 100;
    std::vector<CResult> results;
    auto run = [&] {
      if (program.inC)
        program.inC->run(input, output, 0, results);
      else
        heddle_session_run(program.session, &input, 1, &output, 1);
    };
    EXPECT_DEATH(run(), "heap-buffer-overflow.*\n.*READ");
  }
};

/// Says how much of what ran was for a device beside the host.
class DeviceCount : public testing::Environment {
public:
  void TearDown() override {
    if (isForDevice())
      printf("%d of %d cases ran kernels of a device\n", casesOnDevice, casesRun);
  }
};

} // namespace
} // namespace heddle::ops

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  heddle::toy::add();
  testing::AddGlobalTestEnvironment(new heddle::ops::DeviceCount);
  for (const heddle::ops::Case &test : heddle::ops::wantedCases()) {
    auto [family, name] = llvm::StringRef(test.name).split('/');
    testing::RegisterTest(family.str().c_str(), name.str().c_str(), nullptr, nullptr, __FILE__,
                          __LINE__,
                          [test]() -> testing::Test * { return new heddle::ops::CaseTest(test); });
  }
  testing::RegisterTest("ops", "accesses are judged", nullptr, nullptr, __FILE__, __LINE__,
                        []() -> testing::Test * { return new heddle::ops::ShortInputTest; });
  return RUN_ALL_TESTS();
}
