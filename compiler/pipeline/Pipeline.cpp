// Pipeline: ONNX -> graph -> groups -> kernels -> objects. Each Stages::run is one stage: import
// and simplify once, and partition, plan (planGroups), lower and emit for each CPU.

#include "compiler/pipeline/Pipeline.h"

#include "compiler/cost/Traffic.h"
#include "compiler/graph/Graph.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/program/Model.h"
#include "compiler/onnx/Importer.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/pipeline/Report.h"
#include "compiler/pipeline/Stages.h"
#include "compiler/simplify/Passes.h"
#include "compiler/target/c/Emit.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/Threading.h"

#include <thread>

using namespace mlir;

namespace heddle {

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

static loop::Machine describe(const cpu::Target &target, int64_t workers) {
  return c::isTarget(target.name) ? c::machine() : cpu::machineOf(target, workers);
}

/// No CPU: instructions and libraries are what the C compiler of another day has.
static llvm::Expected<std::vector<cpu::Target>> targetsOf(const CompileOptions &options) {
  if (!c::isTarget(options.target))
    return cpu::targetsFor(options.target);
  const char *wrong = options.threads > 1   ? "'--threads': a C file runs in its caller's thread"
                      : options.isProfiled  ? "profiles: they need heddle's runtime"
                      : options.isSanitized ? "sanitized code: the C compiler makes that"
                                            : nullptr;
  if (wrong)
    return makeError(ErrorCode::Usage, llvm::Twine("error: target 'c' has no ") + wrong);
  cpu::Target target;
  target.name = target.triple = options.target;
  return std::vector<cpu::Target>{target};
}

static llvm::Error simplifyGraph(Compiled &compiled, const CompileOptions &options,
                                 ArrayRef<cpu::Target> targets) {
  simplify::SimplifyOptions rules;
  rules.widensHalves = !options.isStrict;
  rules.foldLimitBytes = options.foldLimitBytes;
  rules.prefersUnsigned = llvm::none_of(targets, [](const cpu::Target &target) {
    return describe(target, 1).dot == loop::Dot::SignedBytes;
  });
  rules.hasCheapTables = describe(targets.back(), 1).permutesBytes;
  PassManager manager(compiled.context.get());
  simplify::addSimplifyPasses(manager, rules);
  std::string problems;
  ScopedDiagnosticHandler handler(compiled.context.get(), [&](Diagnostic &diagnostic) {
    problems += diagnostic.str() + "\n";
    return success();
  });
  if (failed(manager.run(*compiled.graph)))
    return makeError(ErrorCode::Internal, "internal error: simplify: " + problems);
  compiled.program.flops = cost::productFlops(*compiled.graph);
  return llvm::Error::success();
}

static llvm::Error lowerGroups(Compiled &compiled) {
  auto model = compiled.graph->lookupSymbol<func::FuncOp>("main");
  for (lower::Settled &each :
       lower::settle(model, compiled.machine)) // of a graph that came planned
    compiled.simplified.push_back({each.group, each.mechanism});
  if (llvm::Error error = lower::lowerModel(model, compiled.machine, compiled.program))
    return error;
  if (failed(verify(*compiled.program.module)))
    return makeError(ErrorCode::Internal, "internal error: a kernel is not valid");
  return llvm::Error::success();
}

static llvm::Error emitProgram(Compiled &compiled, const CompileOptions &options, Made &made) {
  if (c::isTarget(compiled.target.name)) {
    auto source = c::emit(compiled.program);
    if (source)
      compiled.source = std::move(*source);
    return source.takeError();
  }
  cpu::CodeCache code;
  code.objects = options.cache.get();
  unsigned cores = llvm::hardware_concurrency().compute_thread_count(); // that it may run on
  unsigned jobs = options.jobs > 0 ? options.jobs : cores;
  auto objects = cpu::emitObjects(compiled.program, compiled.target, options.optLevel, jobs, code);
  if (!objects)
    return objects.takeError();
  compiled.objects = std::move(*objects);
  made.objectsFound = code.found;
  return llvm::Error::success();
}

static std::string codeOf(const Compiled &compiled) {
  if (c::isTarget(compiled.target.name))
    return compiled.source;
  auto text =
      cpu::emitText(compiled.program, compiled.target, compiled.optLevel, cpu::TextKind::Assembly);
  return text ? *text : "error: " + llvm::toString(text.takeError());
}

/// From the simplified graph, which `compiled` holds, to objects for one CPU.
static llvm::Error compileFor(const cpu::Target &target, Compiled &compiled,
                              const CompileOptions &options, Stages &stages) {
  unsigned workers = std::max(1u, std::thread::hardware_concurrency());
  compiled.target = target;
  compiled.optLevel = options.optLevel;
  compiled.isStrict = options.isStrict;
  compiled.plansOnly = options.plansOnly;
  compiled.scheduleFolders = options.scheduleFolders;
  compiled.program.isProfiled = options.isProfiled;
  compiled.program.isSanitized = options.isSanitized;
  compiled.machine = describe(target, options.threads > 0 ? options.threads : int64_t(workers));
  Made made;
  if (!options.isPlanned)
    if (llvm::Error error = planGroups(options, compiled, stages))
      return error;
  if (!options.plansOnly) {
    if (llvm::Error error = stages.run(
            "lower", 0.25, [&] { return lowerGroups(compiled); },
            [&] { return textOf(*compiled.program.module); }))
      return error;
    if (llvm::Error error = stages.run(
            "emit", 0.4, [&] { return emitProgram(compiled, options, made); },
            [&] { return codeOf(compiled); }))
      return error;
  }
  compiled.reportJson = reportOf(compiled, stages.seconds, options.plansOnly ? nullptr : &made);
  return llvm::Error::success();
}

/// From the imported graph, which `compiled` holds, to objects for each CPU that was asked for.
/// What asks most of a CPU comes last, so that its weights hold those of all.
static llvm::Error compileStages(Compiled &compiled, const CompileOptions &options,
                                 Stages &stages) {
  auto targets = targetsOf(options);
  if (!targets)
    return targets.takeError();
  if (!options.isPlanned)
    if (llvm::Error error = stages.run(
            "simplify", 0.1, [&] { return simplifyGraph(compiled, options, *targets); },
            [&] { return graphText(compiled); }))
      return error;
  for (size_t i = 0; i + 1 < targets->size(); ++i) {
    stages.enterVariant(i, targets->size(), (*targets)[i].name);
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
  stages.enterVariant(targets->size() - 1, targets->size(), targets->back().name);
  return compileFor(targets->back(), compiled, options, stages);
}

std::string graphText(const Compiled &compiled) {
  ModuleOp module = *compiled.graph; // a handle: printing changes nothing
  return textOf(module);
}

llvm::Expected<std::string> loopsText(const Compiled &compiled) {
  ModuleOp module = *compiled.graph;
  program::Program program;
  auto model = module.lookupSymbol<func::FuncOp>("main");
  if (llvm::Error error = lower::lowerModel(model, compiled.machine, program))
    return std::move(error);
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
  if (llvm::Error error = stages.run(
          "import", 0,
          [&] {
            auto graph = importGraph(*result->context, source, options);
            if (!graph)
              return graph.takeError();
            result->graph = std::move(*graph);
            std::string problem = graph::setTypicalSizes(*result->graph, options.typical);
            return problem.empty() ? llvm::Error::success()
                                   : makeError(ErrorCode::Usage, "error: " + problem);
          },
          [&] { return graphText(*result); }))
    return std::move(error);
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
