// Pipeline: ONNX -> graph -> groups -> kernels -> objects. Each line of `compile` is one stage.

#include "compiler/pipeline/Pipeline.h"

#include "compiler/graph/Graph.h"
#include "compiler/lower/program/Model.h"
#include "compiler/onnx/Importer.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/simplify/Passes.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/Threading.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

using namespace mlir;

namespace heddle {

namespace {

/// Seconds of each stage, and who is told.
class Stages {
public:
  explicit Stages(const CompileOptions &options) : options(options) {}
  void begin(StringRef name, double fraction) {
    end();
    current = name.str();
    start = std::chrono::steady_clock::now();
    if (options.progress)
      options.progress(name, before + fraction * share);
  }
  /// What begins from now on is variant number `i` of `count`.
  void enterVariant(size_t i, size_t count) {
    share = 1.0 / count;
    before = i * share;
  }
  void end() {
    if (current.empty())
      return;
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    double earlier = seconds.contains(current) ? seconds[current].get<double>() : 0;
    seconds[current] = earlier + passed.count();
    current.clear();
  }
  nlohmann::ordered_json seconds;

private:
  const CompileOptions &options;
  std::string current;
  double before = 0, share = 1; // of the whole, for who is told
  std::chrono::steady_clock::time_point start;
};

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> importGraph(MLIRContext &context, const ModelSource &source,
                                                  const CompileOptions &options) {
  onnx::loadDialects(context);
  onnx::ImportOptions import;
  import.functions = options.functions;
  for (const std::string &shape : options.shapes)
    if (llvm::Error error = onnx::addShapeOption(import, shape))
      return std::move(error);
  return source.bytes ? onnx::importModelFromBytes(context, *source.bytes, source.path, import)
                      : onnx::importModel(context, source.path, import);
}

static llvm::Error simplifyGraph(ModuleOp module, const simplify::SimplifyOptions &options) {
  PassManager manager(module.getContext());
  simplify::addSimplifyPasses(manager, options);
  std::string problems;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    problems += diagnostic.str() + "\n";
    return success();
  });
  if (failed(manager.run(module)))
    return makeError(ErrorCode::Internal, "internal error: simplify: " + problems);
  return llvm::Error::success();
}

static double countFlops(ModuleOp module) {
  double flops = 0;
  module.walk([&](Operation *op) {
    if (!isa<graph::ConvOp, graph::MatmulOp, graph::ConvTransposeOp>(op))
      return;
    auto result = graph::elementCount(graph::dimsOf(op->getResult(0))).constant();
    graph::DimVector filter = graph::dimsOf(op->getOperand(1));
    graph::Dim depth = isa<graph::MatmulOp>(op)
                           ? filter[filter.size() - 2]
                           : graph::elementCount(ArrayRef<graph::Dim>(filter).drop_front());
    if (result && depth.constant())
      flops += 2.0 * *result * *depth.constant();
  });
  return flops;
}

nlohmann::ordered_json feedbackJson(const Compiled &compiled) {
  auto feedback = nlohmann::ordered_json::array();
  for (const Feedback &each : compiled.feedback)
    feedback.push_back({{"group", each.group}, {"kind", each.kind}, {"why", each.why}});
  return feedback;
}

nlohmann::ordered_json unfoldedJson(const Compiled &compiled) {
  auto unfolded = nlohmann::ordered_json::array();
  ModuleOp module = *compiled.graph; // a handle: reading changes nothing
  auto list = module->getAttrOfType<ArrayAttr>(simplify::kUnfolded);
  for (Attribute entry : list ? list.getValue() : ArrayRef<Attribute>()) {
    auto each = cast<DictionaryAttr>(entry);
    auto text = [&](StringRef name) { return each.getAs<StringAttr>(name).str(); };
    unfolded.push_back({{"node", text("node")}, {"op", text("op")}, {"why", text("why")}});
  }
  return unfolded;
}

static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(16).elideLargeResourceString(16);
  module.print(stream, flags);
  return stream.str();
}

/// What was made and how long it took.
static void writeReport(Compiled &compiled, Stages &stages, ArrayRef<lower::Simplified> simplified,
                        int64_t found) {
  stages.end();
  const target::Program &program = compiled.program;
  nlohmann::ordered_json report;
  report["model"] = program.model;
  report["target"] = compiled.target.name;
  report["seconds"] = stages.seconds;
  report["feedback"] = feedbackJson(compiled);
  report["unfolded"] = unfoldedJson(compiled);
  if (!compiled.plansOnly) {
    report["groups"] = program.kernels.size();
    report["launches"] = program.launches;
    auto pointwise = nlohmann::ordered_json::array();
    for (auto &[group, form] : simplified)
      pointwise.push_back({{"group", group}, {"planned", form}});
    report["pointwise_instead"] = pointwise;
    report["weights_bytes"] = program.weights.size;
    report["objects"] = {{"count", compiled.objects.size()}, {"from_cache", found}};
  }
  auto variants = nlohmann::ordered_json::array();
  auto add = [&](const Compiled &variant) {
    int64_t code = 0;
    for (const auto &object : variant.objects)
      code += object->getBufferSize();
    variants.push_back({{"target", variant.target.name},
                        {"groups", variant.program.kernels.size()},
                        {"code_bytes", code},
                        {"weights_bytes", variant.program.weights.usedBytes}});
  };
  if (!compiled.variants.empty())
    add(compiled);
  for (const std::unique_ptr<Compiled> &variant : compiled.variants)
    add(*variant);
  if (!variants.empty())
    report["variants"] = variants;
  compiled.reportJson = report.dump(2);
}

/// From the simplified graph, which `result` holds, to objects for one CPU.
static llvm::Error compileFor(const cpu::Target &target, Compiled &compiled,
                              const CompileOptions &options, Stages &stages) {
  unsigned workers = std::max(1u, std::thread::hardware_concurrency());
  compiled.target = target;
  compiled.optLevel = options.optLevel;
  compiled.isStrict = options.isStrict;
  compiled.scheduleFolders = options.scheduleFolders;
  compiled.program.isProfiled = options.isProfiled;
  compiled.program.isSanitized = options.isSanitized;
  compiled.machine =
      cpu::machineOf(target, options.threads > 0 ? options.threads : int64_t(workers));
  if (!options.isPlanned)
    if (llvm::Error error = planGroups(options, compiled, [&](StringRef stage, double fraction) {
          stages.begin(stage, fraction);
        }))
      return error;
  if (options.plansOnly) {
    compiled.plansOnly = true;
    writeReport(compiled, stages, {}, 0);
    return llvm::Error::success();
  }

  stages.begin("lower", 0.25);
  auto model = compiled.graph->lookupSymbol<func::FuncOp>("main");
  auto simplified = lower::lowerModel(model, compiled.machine, compiled.program);
  if (!simplified)
    return simplified.takeError();
  if (failed(verify(*compiled.program.module)))
    return makeError(ErrorCode::Internal, "internal error: a kernel is not valid");

  stages.begin("emit", 0.4);
  cpu::CodeCache code;
  code.objects = options.cache.get();
  unsigned cores = llvm::hardware_concurrency().compute_thread_count(); // that it may run on
  unsigned jobs = options.jobs > 0 ? options.jobs : cores;
  auto objects = cpu::emitObjects(compiled.program, target, options.optLevel, jobs, code);
  if (!objects)
    return objects.takeError();
  compiled.objects = std::move(*objects);
  writeReport(compiled, stages, *simplified, code.found);
  return llvm::Error::success();
}

/// From the imported graph, which `compiled` holds, to objects for each CPU that was asked for.
/// What asks most of a CPU comes last, so that its weights hold those of all.
static llvm::Error compileStages(Compiled &compiled, const CompileOptions &options,
                                 Stages &stages) {
  auto targets = cpu::targetsFor(options.target);
  if (!targets)
    return targets.takeError();
  if (!options.isPlanned) {
    stages.begin("simplify", 0.1);
    simplify::SimplifyOptions rules;
    rules.widensHalves = !options.isStrict;
    rules.foldLimitBytes = options.foldLimitBytes;
    rules.prefersUnsigned = llvm::none_of(*targets, [](const cpu::Target &target) {
      return cpu::machineOf(target, 1).dot == loop::Dot::SignedBytes;
    });
    rules.hasCheapTables = cpu::machineOf(targets->back(), 1).permutesBytes;
    if (llvm::Error error = simplifyGraph(*compiled.graph, rules))
      return error;
    compiled.program.flops = countFlops(*compiled.graph);
  }
  for (size_t i = 0; i + 1 < targets->size(); ++i) {
    stages.enterVariant(i, targets->size());
    auto variant = std::make_unique<Compiled>();
    variant->context = compiled.context;
    variant->graph = compiled.graph->clone();
    variant->program.model = compiled.program.model;
    variant->program.flops = compiled.program.flops;
    variant->program.weights = compiled.program.weights.shared();
    if (llvm::Error error = compileFor((*targets)[i], *variant, options, stages))
      return error;
    compiled.program.weights = variant->program.weights.shared();
    compiled.variants.insert(compiled.variants.begin(), std::move(variant));
  }
  stages.enterVariant(targets->size() - 1, targets->size());
  return compileFor(targets->back(), compiled, options, stages);
}

std::string graphText(const Compiled &compiled) {
  ModuleOp module = *compiled.graph; // a handle: printing changes nothing
  return textOf(module);
}

llvm::Expected<std::string> loopsText(const Compiled &compiled) {
  ModuleOp module = *compiled.graph;
  target::Program program;
  auto simplified =
      lower::lowerModel(module.lookupSymbol<func::FuncOp>("main"), compiled.machine, program);
  if (!simplified)
    return simplified.takeError();
  return textOf(*program.module);
}

llvm::Expected<std::unique_ptr<Compiled>> compile(const ModelSource &source,
                                                  const CompileOptions &options) {
  auto result = std::make_unique<Compiled>();
  result->context = std::make_shared<MLIRContext>(
      options.jobs > 0 ? MLIRContext::Threading::DISABLED : MLIRContext::Threading::ENABLED);
  if (options.jobs > 1) {
    result->pool =
        std::make_unique<llvm::DefaultThreadPool>(llvm::hardware_concurrency(options.jobs));
    result->context->setThreadPool(*result->pool);
  }
  result->program.model = source.path;
  Stages stages(options);
  stages.begin("import", 0);
  auto graph = importGraph(*result->context, source, options);
  if (!graph)
    return graph.takeError();
  result->graph = std::move(*graph);
  if (llvm::Error error = compileStages(*result, options, stages))
    return std::move(error);
  return result;
}

llvm::Expected<std::unique_ptr<Compiled>> compileGraph(std::shared_ptr<MLIRContext> context,
                                                       OwningOpRef<ModuleOp> graph,
                                                       const CompileOptions &options) {
  auto result = std::make_unique<Compiled>();
  result->context = std::move(context);
  result->graph = std::move(graph);
  Stages stages(options);
  if (llvm::Error error = compileStages(*result, options, stages))
    return std::move(error);
  return result;
}

} // namespace heddle
